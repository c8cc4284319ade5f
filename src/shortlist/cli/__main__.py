"""``python -m shortlist.cli``, for where the command itself is not on the path."""

from shortlist.cli import main

main()
