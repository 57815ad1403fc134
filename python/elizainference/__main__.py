"""`python -m elizainference` is the `eliza` command."""

import sys

from elizainference.cli import main

if __name__ == "__main__":
    sys.exit(main())
