"""Runs pytest the way Bazel runs tests; the main module of every pytest_test (pytest.bzl)."""

from __future__ import annotations

import faulthandler
import os
import sys

# A sanitizer's runtime has to be in the process before the library it watches: .bazelrc names it. Not
# in LD_PRELOAD at once, because Bazel's own shell scripts around a test do not survive all of them.
if runtime := os.environ.pop("SANITIZER_RUNTIME", None):
    os.environ["LD_PRELOAD"] = runtime
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")  # What Python never frees is no leak of ours.
    os.execv(sys.executable, sys.orig_argv)

# Set before pytest is imported: what happens to be installed on the machine must not take part.
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"

import pytest

from tests.support import sanitizers


class _Ran:
    """Counts the tests whose body ran: a target whose tests are all skipped checks nothing."""

    def __init__(self) -> None:
        self.count = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and not report.skipped:
            self.count += 1


def _tell_where_it_dies() -> None:
    """Where each thread is at a crash, and, but under TSan, shortly before Bazel ends a test that takes too long.

    In the place of pytest's own plugin, which forgets the latter when a test fails.
    """
    # Not pytest's stderr, which is kept until a test has ended.
    stderr = os.dup(sys.stderr.fileno())
    faulthandler.enable(stderr)
    # It takes a thread of its own. TSan looks at nothing in the child of a process with several threads, and ends the
    # child if it starts one.
    if (limit_s := os.environ.get("TEST_TIMEOUT")) and not sanitizers.TSAN:
        faulthandler.dump_traceback_later(0.95 * float(limit_s), file=stderr)


def _configure_hypothesis() -> None:
    """The same examples on every run: a test that fails now and then would be worth less than none."""
    try:
        import hypothesis
        from hypothesis import configuration
    except ModuleNotFoundError:
        return
    # It caches tables in a folder, by default in the working directory, which is read-only here.
    configuration.set_hypothesis_home_dir(os.path.join(os.environ.get("TEST_TMPDIR", "/tmp"), "hypothesis"))
    hypothesis.settings.register_profile(
        "bazel",
        derandomize=True,
        deadline=None,
        database=None,
        # Of its checks, the one that asks the clock.
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("bazel")


def main(arguments: list[str]) -> int:
    """Returns the exit code for `arguments`, pytest's own: test modules, relative to the runfiles, and options."""
    options = [
        "-ra",
        "-pno:cacheprovider",
        "-pno:faulthandler",
        "--strict-markers",
        "--import-mode=importlib",
        "-Werror::pytest.PytestWarning",
        # No pytest.ini of a parent folder.
        f"--config-file={os.devnull}",
        f"--rootdir={os.getcwd()}",
    ]
    if xml := os.environ.get("XML_OUTPUT_FILE"):
        options += [f"--junitxml={xml}", "-ojunit_family=xunit1"]
    if folder := os.environ.get("TEST_TMPDIR"):
        options.append(f"--basetemp={os.path.join(folder, 'pytest')}")
    chosen = os.environ.get("TESTBRIDGE_TEST_ONLY")
    if chosen:
        options += ["-k", chosen]

    _configure_hypothesis()
    _tell_where_it_dies()
    ran = _Ran()
    code = int(pytest.main(options + arguments, plugins=[ran]))
    if chosen and code == pytest.ExitCode.NO_TESTS_COLLECTED:
        return 0  # --test_filter on many targets: most of them hold no such test
    if code == pytest.ExitCode.OK and ran.count == 0 and "--collect-only" not in arguments:
        print("No test ran: every one of them was skipped.", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
