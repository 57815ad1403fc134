"""The first thing to try: a real model answers in the terminal.

./bazelw run //:demo
./bazelw run //:demo -- "your question"
./bazelw run //:demo -- --print-bundle
"""

from __future__ import annotations

import argparse
import os
import sys

from demo_bundle import MANIFEST
from python.runfiles import runfiles


def main() -> int:
    """Asks the demo model and returns the exit code."""
    parser = argparse.ArgumentParser(prog="demo", description="Ask a small model that comes with this workspace.")
    parser.add_argument("question", nargs="*", default=["What is the capital of France?"])
    parser.add_argument("--print-bundle", action="store_true", help="print the path of the model's bundle, and no more")
    arguments = parser.parse_args()
    bundle = os.path.dirname(os.path.abspath(runfiles.Create().Rlocation(MANIFEST)))
    if arguments.print_bundle:
        print(bundle)
        return 0

    from elizainference.cli import _catalog, _terminal
    from elizainference.cli import main as eliza

    question = " ".join(arguments.question)
    _terminal.note(f"> {question}")
    system = _catalog.MODELS["smollm2-135m"].system
    return eliza(["generate", "--bundle", bundle, "--system", system, "--max-tokens", "256", "--", question])


if __name__ == "__main__":
    try:
        code = main()
    except KeyboardInterrupt:  # while modules are still being imported
        code = 130
    sys.exit(code)
