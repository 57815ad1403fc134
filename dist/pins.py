"""The files that third_party/extensions.bzl pins, read from it: there is no second list of them.

Starlark is close enough to Python that Python runs it: repository rules become functions that write down their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote


@dataclass(frozen=True)
class Pin:
    """One file from a package index, or from an address of its own."""

    index: str  # "pypi", "npm"; "generic" for an address
    name: str
    version: str
    platform: str  # the platform that the file is for, as the index calls it; "" for any
    sha256: str
    patches: tuple[str, ...] = ()
    url: str = ""

    @property
    def purl(self) -> str:
        """The package URL (https://github.com/package-url/purl-spec)."""
        if self.url:
            return f"pkg:generic/{self.name}?download_url={quote(self.url, safe='')}&checksum=sha256:{self.sha256}"
        return f"pkg:{self.index}/{self.name.replace('@', '%40')}@{self.version}"


def _pypi(arguments: dict) -> list[Pin]:
    name, version = arguments["package"], arguments["version"]
    patches = tuple(label.rpartition(":")[2] for label in arguments.get("patches", []))
    if hosts := arguments.get("host_wheels"):
        files = [value.split(" ") for _, value in sorted(hosts.items())]
    else:
        files = [(arguments.get("platform", ""), arguments["sha256"])]
    return [Pin("pypi", name, version, platform, sha256, patches) for platform, sha256 in files]


def _npm(arguments: dict) -> list[Pin]:
    files = list(arguments.get("packages", {}).items())
    files += [tuple(value.split(" ")) for _, value in sorted(arguments.get("host_packages", {}).items())]
    split = [(*package.rsplit("@", 1), sha256) for package, sha256 in files]
    return [Pin("npm", name, version, "", sha256) for name, version, sha256 in split]


def _http(arguments: dict) -> list[Pin]:
    version = arguments.get("version", "")
    return [Pin("generic", arguments["name"], version, "", arguments["sha256"], url=arguments["url"])]


_KINDS = {"android_ndk": _http, "pypi_archive": _pypi, "npm_modules": _npm, "http_archive": _http}


class _Context:
    """What a module extension is called with, as far as ours looks at it."""

    def extension_metadata(self, **_: object) -> None:
        """The extension's last call."""


def read(extensions: Path) -> dict[str, list[Pin]]:
    """{name of a repository: the files that it may be made of}: one, or one for each kind of machine."""
    pins: dict[str, list[Pin]] = {}
    names: dict[str, object] = {}

    def rule(kind: str) -> Callable[..., None]:
        def declare(**arguments: object) -> None:
            if kind in _KINDS:
                pins[arguments["name"]] = _KINDS[kind](arguments)

        return declare

    def load(_: str, *symbols: str) -> None:
        names.update({symbol: rule(symbol) for symbol in symbols})

    names |= {"load": load, "module_extension": lambda implementation, **_: implementation(_Context())}
    exec(compile(extensions.read_text(), str(extensions), "exec"), names)
    return pins
