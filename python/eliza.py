"""The `eliza` command as a Bazel program."""

import sys

if __name__ == "__main__":
    try:
        from elizainference.cli import program
    except KeyboardInterrupt:  # while modules are still being imported
        sys.exit(130)
    program()
