"""Exit codes of the command.

0     done; also when training stopped short of its tolerance, which is a warning
1     it cannot be done here: out of memory or disk, a package is missing
2     wrong usage, unreadable or unsuitable data
130   interrupted with Ctrl-C; 143 and 129 by SIGTERM and SIGHUP, which are treated alike
141   the reader of the output has gone (as in ``shortlist predict ... | head``)
"""

DONE, FAILED, REFUSED, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141
