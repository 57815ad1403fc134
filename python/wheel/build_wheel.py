"""Makes the wheel: stages the package as a Python project, and has hatchling build it.

build_wheel.py --out FOLDER FILE=PATH...: each FILE becomes PATH of the project.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from elf_tag import platform_tag
from hatchling.builders.wheel import WheelBuilder

# Tells hatchling what the wheel is for: it holds compiled files, which its own guess leaves out.
_HOOK = """\
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tag(BuildHookInterface):
    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = {tag!r}
"""


def build(files: dict[str, Path], out: Path) -> Path:
    """The wheel of `files`, {path in the project: file}, in the folder `out`."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        for path, file in files.items():
            (project / path).parent.mkdir(parents=True, exist_ok=True)
            # Copied, not linked: a wheel holds no links.
            shutil.copyfile(file, project / path)
        # The extension is for one version of Python, and is called so that no other takes it.
        extension = project / "elizainference" / "_native.so"
        extension = extension.rename(extension.with_name("_native" + sysconfig.get_config_var("EXT_SUFFIX")))
        compiled = [extension, *project.rglob("libelizainference.so")]
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        (project / "tag_hook.py").write_text(_HOOK.format(tag=f"{python}-{python}-{platform_tag(compiled)}"))
        return Path(next(WheelBuilder(str(project)).build(directory=str(out), versions=["standard"])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("files", nargs="+", metavar="FILE=PATH")
    arguments = parser.parse_args()
    # The same files make the same wheel.
    os.environ["SOURCE_DATE_EPOCH"] = "315532800"
    os.umask(0o022)
    pairs = (pair.rpartition("=") for pair in arguments.files)
    build({path: Path(file) for file, _, path in pairs}, arguments.out.absolute())


if __name__ == "__main__":
    main()
