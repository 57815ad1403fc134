"""Archives depend on what is in them and on nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile

import pytest

from dist import archive


@pytest.fixture
def entries(tmp_path):
    (tmp_path / "a").write_bytes(b"first")
    (tmp_path / "b").write_bytes(bytes(range(256)) * 400)
    return {"top/lib/b.bin": tmp_path / "b", "top/a": tmp_path / "a"}


@pytest.mark.parametrize("name", ["x.tar.gz", "x.zip"])
def test_the_same_bytes_whatever_the_order_time_and_mode(tmp_path, entries, name):
    one, two = tmp_path / f"1{name}", tmp_path / f"2{name}"
    archive.write(one, entries)
    for file in entries.values():
        os.utime(file, (1, 1))
        file.chmod(0o600)
    archive.write(two, dict(reversed(entries.items())))
    assert one.read_bytes() == two.read_bytes()


def test_tar(tmp_path, entries):
    archive.write(tmp_path / "x.tar.gz", entries)
    with tarfile.open(tmp_path / "x.tar.gz") as tar:
        members = tar.getmembers()
        assert [member.name for member in members] == ["top", "top/a", "top/lib", "top/lib/b.bin"]
        assert {(member.uid, member.gid, member.uname, member.mtime) for member in members} == {(0, 0, "", 315532800)}
        assert [oct(member.mode) for member in members] == ["0o755", "0o644", "0o755", "0o644"]
        assert tar.extractfile("top/lib/b.bin").read() == entries["top/lib/b.bin"].read_bytes()


def test_zip(tmp_path, entries):
    archive.write(tmp_path / "x.aar", entries)
    with zipfile.ZipFile(tmp_path / "x.aar") as file:
        assert [info.filename for info in file.infolist()] == ["top/a", "top/lib/b.bin"]
        assert {(info.date_time, info.external_attr >> 16) for info in file.infolist()} == {((1980, 1, 1, 0, 0, 0), 0o100644)}
        assert file.read("top/a") == b"first"
        assert file.testzip() is None


def _main(tmp_path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, archive.__file__, f"--out={tmp_path / 'x.zip'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_arguments_from_a_file(tmp_path, entries):
    (tmp_path / "parameters").write_text("--prefix=p\n" + "".join(f"{path}={file}\n" for path, file in entries.items()))
    assert _main(tmp_path, f"@{tmp_path}/parameters").returncode == 0
    with zipfile.ZipFile(tmp_path / "x.zip") as file:
        assert file.namelist() == ["p/top/a", "p/top/lib/b.bin"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a=1", "a=2"], "a is in the archive twice: 1 and 2"),
        (["../a=1"], "relative and without .."),
        (["/a=1"], "relative and without .."),
        (["a"], "takes PATH=FILE"),
    ],
)
def test_what_no_archive_should_hold(tmp_path, arguments, message):
    done = _main(tmp_path, *arguments)
    assert done.returncode != 0
    assert message in done.stderr
