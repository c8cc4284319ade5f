"""``python -m shortlist``, for where the command itself is not on the path."""

from shortlist.cli import main

if __name__ == "__main__":
    main()
