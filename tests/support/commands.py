"""What a commands target (commands.bzl) lists."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass

from tests.support.runfile import runfile

# Flags of which the path is a part, and options that may come before one.
_ABSOLUTE = re.compile(r"(?:-I|-L|-B|-F|-isystem|-iquote|[^=]*=)?/(?!dev/null)")


@dataclass(frozen=True)
class Command:
    """A command that a build would run."""

    mnemonic: str  # CppArchive, CppCompile, CppLink
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def source(self) -> str:
        """What is compiled, from the root of its repository: "native/ffi/entry.cc", "ggml/src/ggml.c"."""
        path = self.arguments[self.arguments.index("-c") + 1]
        return re.sub(r"^(bazel-out/[^/]+/bin/)?(external/[^/]+/)?", "", path)

    @property
    def absolute_paths(self) -> list[str]:
        """The arguments that name a file of this machine."""
        return [argument for argument in self.arguments if _ABSOLUTE.match(argument)]


def read() -> list[Command]:
    """Those of the target that the test names in COMMANDS."""
    lines = [json.loads(line) for line in runfile(os.environ["COMMANDS"]).read_text().splitlines()]
    return [Command(line["mnemonic"], tuple(line["arguments"]), tuple(line["outputs"])) for line in lines]
