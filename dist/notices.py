"""Writes the licenses of the components in a package, one after the other.

    notices.py --out=FILE [--component=JSON]...

A component is what ComponentInfo (third_party/component.bzl) holds; `texts` are the files with its license.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

_RULE = "=" * 80


def notices(components: list[dict]) -> str:
    """The text for all components; a license that several have word for word is there once."""
    under: dict[str, list[dict]] = {}
    for component in sorted(components, key=lambda component: component["name"]):
        text = "\n\n".join(Path(path).read_text().strip() for path in component["texts"])
        under.setdefault(text, []).append(component)

    parts = ["libelizainference contains or is built with the following components.\n"]
    for text, sharing in under.items():
        heads = [f"{component['name']} {component['version']} ({component['license']})" for component in sharing]
        parts.append("\n".join([_RULE, *heads, _RULE, "", text, ""]))
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--component", action="append", default=[], type=json.loads, metavar="JSON")
    arguments = parser.parse_args()
    arguments.out.write_text(notices(arguments.component))


if __name__ == "__main__":
    main()
