"""Writes the software bill of materials of a package, as SPDX 2.3 in JSON.

    sbom.py --out=FILE --name=NAME --version=VERSION --extensions=third_party/extensions.bzl
        [--file=PATH=FILE]... [--component=JSON]...

says what the package's files are (sha256), which components are in them or were used to build them, under which
license, and from which pinned file each came, with its sha256. A component is what ComponentInfo (third_party/component.bzl)
holds. Nothing depends on when or where it is written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import uuid
from pathlib import Path

from dist import pins

# How SPDX calls what a component has to do with the package; the component comes first.
_ROLES = {"linked": "STATIC_LINK", "included": "CONTAINED_BY", "loaded": "RUNTIME_DEPENDENCY_OF", "build": "BUILD_TOOL_OF"}


def _id(*names: str) -> str:
    return "SPDXRef-" + "-".join("".join(c if c.isalnum() or c == "." else "-" for c in name) for name in names if name)


def _package(identifier: str, name: str, version: str, license_id: str) -> dict:
    return {
        "SPDXID": identifier,
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": license_id,
        "licenseDeclared": license_id,
        "copyrightText": "NOASSERTION",
    }


def _input(pin: pins.Pin) -> dict:
    """The package for one pinned file."""
    package = _package(_id("Input", pin.index, pin.name, pin.version, pin.platform), pin.name, pin.version, "NOASSERTION")
    package["checksums"] = [{"algorithm": "SHA256", "checksumValue": pin.sha256}]
    package["externalRefs"] = [
        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": pin.purl}
    ]
    comments = [f"The file for {pin.platform}."] if pin.platform else []
    comments += [f"Patched with third_party: {', '.join(pin.patches)}."] if pin.patches else []
    if comments:
        package["comment"] = " ".join(comments)
    return package


def _file(path: str, file: Path) -> dict:
    data = file.read_bytes()
    return {
        "SPDXID": _id("File", path),
        "fileName": f"./{path}",
        "checksums": [
            {"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},  # SPDX requires it
            {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()},
        ],
        "licenseConcluded": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    }


def bill(name: str, version: str, files: dict[str, Path], components: list[dict], pinned: dict[str, list[pins.Pin]]) -> dict:
    """The document.

    Args:
      name: of the package.
      version: of the package.
      files: {path in the package: file}: what of it is made, rather than copied.
      components: of each its name, version, license (SPDX), pin (a name of third_party/extensions.bzl, or "" for
        what nobody pinned) and role.
      pinned: pins.read().

    Raises:
      SystemExit: a component names a pin that does not exist.
    """
    package = _package(_id("Package"), name, version, "MIT")
    packages, relationships = [package], []

    def relate(subject: str, kind: str, other: str) -> None:
        relationships.append({"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other})

    relate("SPDXRef-DOCUMENT", "DESCRIBES", package["SPDXID"])
    entries = [_file(path, file) for path, file in sorted(files.items())]
    for entry in entries:
        relate(package["SPDXID"], "CONTAINS", entry["SPDXID"])

    inputs: dict[str, dict] = {}
    for component in sorted(components, key=lambda component: component["name"]):
        if component["pin"] and component["pin"] not in pinned:
            raise SystemExit(f"{component['name']}: third_party/extensions.bzl declares no {component['pin']}")
        described = _package(
            _id("Component", component["name"]), component["name"], component["version"], component["license"]
        )
        packages.append(described)
        if component["role"] == "linked":
            relate(package["SPDXID"], _ROLES["linked"], described["SPDXID"])
        else:
            relate(described["SPDXID"], _ROLES[component["role"]], package["SPDXID"])
        if not component["pin"]:
            described["comment"] = "Taken from the machine that built the package, and not pinned."
        for pin in pinned.get(component["pin"], []):
            source = _input(pin)
            inputs[source["SPDXID"]] = source
            relate(described["SPDXID"], "CONTAINED_BY", source["SPDXID"])

    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "creationInfo": {"created": "1980-01-01T00:00:00Z", "creators": ["Tool: libelizainference-sbom"]},
        "packages": packages + [inputs[identifier] for identifier in sorted(inputs)],
        "files": entries,
        "relationships": relationships,
    }
    # A namespace is unique to a document: a name made of its contents is.
    contents = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    document["documentNamespace"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, contents)}"
    return document


def main() -> None:
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--extensions", type=Path, required=True)
    parser.add_argument("--file", action="append", default=[], metavar="PATH=FILE")
    parser.add_argument("--component", action="append", default=[], type=json.loads, metavar="JSON")
    arguments = parser.parse_args()
    files = {path: Path(file) for path, _, file in (entry.partition("=") for entry in arguments.file)}
    document = bill(arguments.name, arguments.version, files, arguments.component, pins.read(arguments.extensions))
    arguments.out.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
