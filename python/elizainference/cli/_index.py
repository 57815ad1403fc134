"""Files of a package index, downloaded as pip is set up to: its index, its proxies, its certificates.

The command asks pip where its index is, and downloads by itself, since pip starts a download that broke off from the
beginning.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import html.parser
import http.client
import io
import json
import os
import re
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elizainference._errors import ElizaError
from elizainference.cli import _files

# What a connection can end with.
_FAILURES = (OSError, ValueError, http.client.HTTPException)

_JSON = "application/vnd.pypi.simple.v1+json"
_PIECE = 1 << 18
_MAX_PAGE = 64 << 20
_TIMEOUT_S = 60
# Of a download that breaks off: without an end, as long as each brings something.
_ATTEMPTS = 5


class FetchError(ElizaError):
    """A file could not be had."""


def index_urls() -> list[str]:
    """The indexes that pip asks, in its order: PIP_INDEX_URL and PIP_EXTRA_INDEX_URL, or its configuration."""
    settings = _pip_settings()
    main = settings.get("index-url") or _pip_default()
    if main is None:
        raise FetchError("pip is not there to say which index to use; set PIP_INDEX_URL to one")
    return [main, *settings.get("extra-index-url", "").split()]


def _pip_settings() -> dict[str, str]:
    settings: dict[str, str] = {}
    for line in _pip_config().splitlines():
        # Those of `pip download` go before the global ones, and the environment's before both.
        if match := re.fullmatch(r"(global|download|:env:)\.([a-z-]+)='(.*)'", line.strip()):
            settings[f"{match[1]}.{match[2]}"] = match[3].replace("\\n", " ")
    merged: dict[str, str] = {}
    for section in ("global", "download", ":env:"):
        for key in ("index-url", "extra-index-url", "cert"):
            if value := settings.get(f"{section}.{key}"):
                merged[key] = value
    for key in ("index-url", "extra-index-url", "cert"):
        # One that is empty takes the configuration's away, as it does for pip.
        name = "PIP_" + key.upper().replace("-", "_")
        if name in os.environ:
            merged[key] = os.environ[name]
    return merged


@functools.cache
def _pip_config() -> str:
    return _pip("-m", "pip", "config", "list") or ""


@functools.cache
def _pip_default() -> str | None:
    return _pip("-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)")


def _pip(*arguments: str) -> str | None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None if done.returncode == 0 else None


def find(package: str, filename: str) -> str:
    """The URL of a package's file.

    Raises:
      FetchError: no index has it; the message says what each of them answered.
    """
    tried = []
    for index in index_urls():
        page = f"{index.rstrip('/')}/{package}/"
        try:
            for name, url in _links(page):
                if name == filename:
                    return url
            tried.append(f"{_shown(page)}: has no {filename}")
        except _FAILURES as error:
            tried.append(f"{_shown(page)}: {_reason(error)}")
    raise FetchError(
        f"no index has {filename}; `python3 -m pip config list` and the PIP_* variables say which are asked:\n  "
        + "\n  ".join(tried)
    )


def download(url: str, target: Path, sha256: str, size: int) -> None:
    """Downloads a file, going on where an earlier attempt broke off.

    Raises:
      FetchError: it cannot be reached, or is not what it should be. What was downloaded stays in `target`.
    """
    done = target.stat().st_size if target.exists() else 0
    _files.require_space(target.parent, size - done)
    open(target, "ab").close()  # a folder that cannot be written to is known before anything is asked for
    label = url.rpartition("/")[2]
    with _files.progress(label, size, done) as advance:
        attempts = 0
        while done < size and attempts < _ATTEMPTS:
            before = done
            try:
                done = _append(url, target, done, size, advance)
                failure = "the connection ended early"
            except _FAILURES as error:
                failure = _reason(error)
                done = target.stat().st_size
            attempts = 0 if done > before else attempts + 1
    if done < size:
        raise FetchError(f"{_shown(url)}: {failure}; the same command goes on from {_files.megabytes(done)}")
    found = _files.sha256(target, f"checking {label}")
    if found != sha256:
        target.unlink()
        raise FetchError(
            f"{_shown(url)} has the sha256 {found}, where {sha256} is pinned: the index served another file. Nothing "
            "of it is kept."
        )


def _append(url: str, target: Path, done: int, size: int, advance: _files.Advance) -> int:
    headers = {"Range": f"bytes={done}-"} if done else {}
    with _open(url, headers) as response:
        # 200 where the server knows no ranges: from the beginning then.
        whole = done == 0 or response.status != 206
        if whole and done:
            advance(-done)
            done = 0
        with io.FileIO(target, "wb" if whole else "ab") as file:
            # No more than what is wanted, whatever the server sends.
            while done <= size and (piece := response.read(_PIECE)):
                _write(file, piece)
                done += len(piece)
                advance(len(piece))
    return done


def _write(file: io.FileIO, piece: bytes) -> None:
    left = memoryview(piece)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:  # no failure of the connection, which would be tried again
        raise FetchError(
            f"{file.name} cannot be written: {error.strerror}; the same command goes on from there"
        ) from None


class _Anchors(html.parser.HTMLParser):
    """The links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._href: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self._href = dict(attrs).get("href")

    def handle_data(self, data: str) -> None:
        if self._href is not None:
            self.found.append((data.strip(), self._href))
            self._href = None


def _links(page: str) -> Iterator[tuple[str, str]]:
    with _open(page, {"Accept": f"{_JSON}, text/html;q=0.5"}) as response:
        data = response.read(_MAX_PAGE)
        base = response.url
        is_json = "json" in response.headers.get("Content-Type", "")
    if is_json:
        pairs = _pairs(data)
    else:
        anchors = _Anchors()
        anchors.feed(data.decode(errors="replace"))
        pairs = anchors.found
    for name, url in pairs:
        yield name, _with_login(urllib.parse.urljoin(base, url.partition("#")[0]), page)


def _pairs(page: bytes) -> list[tuple[str, str]]:
    try:
        return [(str(file["filename"]), str(file["url"])) for file in json.loads(page)["files"]]
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"its page is of no package: {error!r}") from None


def _with_login(url: str, page: str) -> str:
    """`url`, with the login of `page` where that is on the same host."""
    parts, its = urllib.parse.urlsplit(url), urllib.parse.urlsplit(page)
    login, _, host = its.netloc.rpartition("@")
    return parts._replace(netloc=its.netloc).geturl() if login and parts.netloc == host else url


@contextlib.contextmanager
def _open(url: str, headers: dict[str, str]) -> Iterator[Any]:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file" and Path(urllib.request.url2pathname(parts.path)).is_dir():
        url = url.rstrip("/") + "/index.html"
    elif parts.username is not None:
        # urllib takes none from a URL.
        login = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers = {**headers, "Authorization": "Basic " + base64.b64encode(login.encode()).decode()}
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    certificates = os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE") or _pip_settings().get("cert")
    context = ssl.create_default_context(cafile=certificates if parts.scheme == "https" else None)
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context) as response:
        yield response


def _shown(url: str) -> str:
    """A URL without its password."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error)
