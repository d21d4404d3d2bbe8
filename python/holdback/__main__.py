"""`python -m holdback`: the same as the `holdback` command."""

import sys

from holdback.cli import main

if __name__ == "__main__":
    sys.exit(main())
