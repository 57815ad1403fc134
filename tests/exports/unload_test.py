"""A host that loads the library, uses it and unloads it is the same host afterwards."""

import json
import os
import subprocess

import pytest

from tests.support import models
from tests.support.runfile import runfile


@pytest.fixture(scope="module")
def report():
    arguments = [runfile(os.environ["HOST"]), runfile(os.environ["LIBRARY"]), models.bundle("tiny_llama_cycle")]
    finished = subprocess.run(arguments, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    return json.loads(finished.stdout)


def test_the_terminate_handler_is_the_hosts(report):
    assert report["terminate_handler_kept"]


def test_nothing_of_it_stays_mapped(report):
    assert not report["still_mapped"]


def test_no_thread_is_left(report):
    assert report["threads_after_probes"] == 1
    assert report["threads_after_use"] == 1


def test_a_thousand_probes_leave_no_memory_behind(report):
    assert report["probe_heap_growth"] < 1  # bytes per load


def test_use_leaves_next_to_no_memory_behind(report):
    # Bytes per load, generation and unload. What is never destroyed, so that the process may exit while threads are
    # in a call (the registry, the model cache), is lost with the library.
    assert report["use_heap_growth"] < 4096
