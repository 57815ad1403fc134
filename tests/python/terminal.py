"""A pseudo-terminal with a program on it: what it shows, what is typed, and what it is left like."""

from __future__ import annotations

import codecs
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
from tests.support.waiting import eventually


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
        # What is read may end in the middle of a character, or of a line's end.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
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

    def type_until_it_ends(self, text: str) -> None:
        """Types a text again and again: what is typed together with Ctrl-C can be lost."""
        end = time.monotonic() + LIMIT_S
        while self.runs:
            assert time.monotonic() < end, f"does not end: {self.output!r}"
            self.type(text)
            time.sleep(0.5)
            while self._more(0.0):
                pass

    def settle(self) -> None:
        """Waits until the program waits for somebody to type. For Ctrl-C at a prompt: Python's readline does not see
        one in the moment between its prompt and its wait."""
        quiet = 0
        before = None
        end = time.monotonic() + LIMIT_S
        while quiet < 5:
            assert time.monotonic() < end, f"does not wait for somebody to type: {before}, {self.output!r}"
            time.sleep(0.02)
            now = self._state_and_time()
            quiet = quiet + 1 if now == before and now[0] == "S" else 0
            before = now

    def until_at_work(self) -> None:
        """Waits until the program has computed for some hundredths of a second from here on."""
        _, before = self._state_and_time()
        assert eventually(lambda: self._state_and_time()[1] >= before + 0.05), f"does nothing: {self.output!r}"

    def _state_and_time(self) -> tuple[str, float]:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def read(self, pattern: str, limit_s: float = LIMIT_S) -> str:
        """What is shown from here to the first match of `pattern`, that included."""
        start = len(self.output)
        end = time.monotonic() + limit_s
        while not (match := re.compile(pattern).search(self.output, start)):
            assert time.monotonic() < end, f"{pattern!r} is not in {self.output[start:]!r}"
            # Asked first: all that it has written is there to be read once it has ended.
            ended = not self.runs
            assert self._more(0.0 if ended else 1.0) or not ended, f"ended with {self.output[start:]!r}"
        return self.output[start : match.end()]

    def end(self) -> int:
        """Waits until the program has ended, and returns its exit code; `output` has all that it showed."""
        end = time.monotonic() + LIMIT_S
        while self.runs:
            self._more(0.1)
            assert time.monotonic() < end, f"does not end: {self.output!r}"
        while self._more(0.0):
            pass
        self.output += self._held
        after = termios.tcgetattr(self._theirs)
        assert after == self.modes, f"the terminal is left in another mode: {self.output!r}"
        # A cursor that was hidden is shown again.
        assert self.output.rfind("\x1b[?25l") <= self.output.rfind("\x1b[?25h")
        return self._process.returncode

    def close(self) -> None:
        """Ends a program that is still there."""
        if self.runs:
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
        text = self._held + self._decoder.decode(os.read(self._ours, 65536))
        self._held = "\r" if text.endswith("\r") else ""
        self.output += text.removesuffix("\r").replace("\r\n", "\n")
        return True


def plain(text: str) -> str:
    """`text` without what colours it and moves the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def _take_terminal() -> None:
    import fcntl

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
