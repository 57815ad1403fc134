"""`python -m elizainference` is the `eliza` command."""

from elizainference.cli import program

if __name__ == "__main__":
    program()
