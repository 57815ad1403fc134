"""Clients in Node.js (koffi) and Bun (bun:ffi), for ABI 15 and 12, against libraries of both."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.support import models
from tests.support.runfile import runfile

CYCLE = "tiny_llama_cycle"
UTF8 = "tiny_llama_utf8"


def _node() -> tuple[list, dict]:
    modules = runfile(os.environ["KOFFI"]).parent.parent
    # Symbolic links stay as they are: where they lead, the files beside a file are not those of the runfiles.
    node = [runfile(os.environ["NODE"]), "--preserve-symlinks", "--preserve-symlinks-main"]
    return [*node, runfile("tests/clients/node_client.mjs")], {"NODE_PATH": str(modules)}


def _bun() -> tuple[list, dict]:
    command = [runfile(os.environ["BUN"]), "--preserve-symlinks", runfile("tests/clients/bun_client.mjs")]
    return command, {"BUN_RUNTIME_TRANSPILER_CACHE_PATH": "0", "DO_NOT_TRACK": "1"}


RUNTIMES = {"node": _node, "bun": _bun}


@pytest.fixture(params=RUNTIMES)
def client(request, tmp_path):
    """Runs a client, which must succeed and write nothing but its report; returns that."""

    def run(library_abi: int, client_abi: int, model: str = CYCLE, prompt: str = "abc", max_tokens: int = 40) -> dict:
        command, environment = RUNTIMES[request.param]()
        arguments = [
            runfile(os.environ[f"LIBRARY_{library_abi}"]),
            models.bundle(model),
            prompt,
            max_tokens,
            client_abi,
        ]
        done = subprocess.run(
            [*map(str, command), *map(str, arguments)],
            env=os.environ | environment | {"HOME": str(tmp_path)},
            capture_output=True,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout!r}\n{done.stderr.decode()}"
        assert done.stderr == b""
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize(("library_abi", "client_abi"), [(15, 15), (12, 12), (12, 15)])
def test_generates(client, library_abi, client_abi):
    report = client(library_abi, client_abi)
    assert (report["version"], report["refused"]) == (str(library_abi), None)

    expected = models.alphabet("abc", 40)
    assert report["first"]["text"] == expected
    assert report["first"]["tokens"] == 40
    assert report["first"]["chunks"] > 1, "not a stream"
    assert report["cancelled"]["expected"], report["cancelled"]
    assert report["cancelled"]["message"]
    assert report["afterReset"] == report["first"]
    assert report["kept"] in (0, report["promptTokens"] - 1)
    assert report["afterResetKeep"] == report["first"]
    assert report["afterClose"]["status"] == -2
    assert "closed" in report["afterClose"]["message"]


@pytest.mark.parametrize(("library_abi", "client_abi"), [(15, 15), (12, 12)])
def test_every_family_binds(client, library_abi, client_abi):
    report = client(library_abi, client_abi)
    newer = {"visionStream", "phonemes"}
    missing = {family for family, bound in report["bound"].items() if not bound}
    assert missing == (newer if library_abi == 12 else set())
    assert report["supported"]["llm_stream_supported"] == 1
    assert report["supported"]["tokenize_supported"] == 1
    assert report["supported"]["tts_stream_supported"] == 0


def test_a_client_for_12_refuses_15(client):
    report = client(15, 12)
    assert "15" in report["refused"]


def test_errors_arrive_as_text(client):
    report = client(15, 15)
    assert "/no/such/bundle" in report["missingBundle"]
    assert "temperature" in report["badConfig"]
    assert "-1" in report["badConfig"]
    # Written at its offset, read at its offset.
    assert "draft_min" in report["badDrafter"]
    assert "3" in report["badDrafter"] and "2" in report["badDrafter"]


def test_characters_split_over_tokens(client):
    report = client(15, 15, model=UTF8, prompt="a", max_tokens=64)
    assert report["first"]["text"] == models.utf8("a", 32)
