"""The `eliza` command as a Bazel program."""

import sys

if __name__ == "__main__":
    try:
        from elizainference.cli import main

        code = main()
    except KeyboardInterrupt:  # while modules are still being imported
        code = 130
    sys.exit(code)
