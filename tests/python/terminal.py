"""A pseudo-terminal with a program on it: what it shows, what is typed, and what it is left like."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from pathlib import Path

from tests.python.program import LIMIT_S, environment
from tests.support.runfile import runfile


class Terminal:
    """A program that was started on a terminal of its own, as a shell would.

    Args:
      program: a runfile.
      arguments: its arguments.
      variables: its environment, besides that of tests.python.program.
    """

    def __init__(self, program: str, *arguments: str | Path, **variables: str) -> None:
        self._ours, self._theirs = pty.openpty()
        self.modes = termios.tcgetattr(self._theirs)
        self.output = ""
        self._process = subprocess.Popen(
            [runfile(program), *arguments],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=environment(**{"TERM": "xterm-256color", **variables}),
            # The terminal is its own: so Ctrl-C reaches it, and nobody else.
            start_new_session=True,
            preexec_fn=_take_terminal,
        )

    @property
    def pid(self) -> int:
        """Of the program."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether the program has not ended."""
        return self._process.poll() is None

    def type(self, text: str) -> None:
        """Types a text, "\\r" being the Enter key."""
        os.write(self._ours, text.encode())

    def ctrl_c(self) -> None:
        """Presses Ctrl-C."""
        self.type("\x03")

    def settle(self) -> None:
        """Waits until the program waits for somebody to type. For Ctrl-C at a prompt: Python's readline does not see
        one in the moment between its prompt and its wait."""
        quiet = 0
        before = None
        while quiet < 5:
            time.sleep(0.02)
            fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            now = (fields[0], fields[11], fields[12])  # its state, and the time it took
            quiet = quiet + 1 if now == before and now[0] == "S" else 0
            before = now

    def read(self, pattern: str, limit_s: float = LIMIT_S) -> str:
        """What is shown from here to the first match of `pattern`, that included."""
        start = len(self.output)
        end = time.monotonic() + limit_s
        while not (match := re.compile(pattern).search(self.output, start)):
            assert time.monotonic() < end, f"{pattern!r} is not in {self.output[start:]!r}"
            assert self._more(1.0) or self._process.poll() is None, f"ended with {self.output[start:]!r}"
        shown, self.output = self.output[start : match.end()], self.output
        return shown

    def end(self) -> int:
        """Waits until the program has ended, and returns its exit code; `output` has all that it showed."""
        end = time.monotonic() + LIMIT_S
        while self._process.poll() is None:
            self._more(0.1)
            assert time.monotonic() < end, f"does not end: {self.output!r}"
        while self._more(0.0):
            pass
        after = termios.tcgetattr(self._theirs)
        assert after == self.modes, "the terminal is left in another mode"
        # A cursor that was hidden is shown again.
        assert self.output.rfind("\x1b[?25l") <= self.output.rfind("\x1b[?25h")
        return self._process.returncode

    def close(self) -> None:
        """Ends a program that is still there."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _more(self, wait_s: float) -> bool:
        if not select.select([self._ours], [], [], wait_s)[0]:
            return False
        self.output += os.read(self._ours, 65536).decode(errors="replace").replace("\r\n", "\n")
        return True


def plain(text: str) -> str:
    """`text` without what colours it and moves the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def _take_terminal() -> None:
    import fcntl

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
