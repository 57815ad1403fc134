"""native/base/error.h: what is thrown becomes a status and a message."""

import _ffi_testing as ffi
import pytest


@pytest.mark.parametrize(
    ("thrown", "status", "message"),
    [
        ("nothing", 7, None),
        ("Error", -3, "no \N{REPLACEMENT CHARACTER}"),
        ("bad_alloc", -5, "out of memory"),
        ("exception", -4, "a runtime's words"),
        ("int", -4, "an exception that carries no message"),
    ],
)
def test_exceptions_become_statuses_and_messages(thrown, status, message):
    assert ffi.raising(thrown) == (status, message)


def test_an_exception_replaces_a_message_left_before_it():
    assert ffi.raising_after_message() == (-5, "second")


def test_nobody_has_to_listen():
    assert ffi.raising_without_out_error() == -7


def test_the_status_of_a_message_is_kept_once():
    ffi.take_error_status()
    assert ffi.raising_without_out_error() == -7
    assert ffi.take_error_status() == -7
    assert ffi.take_error_status() == 0
