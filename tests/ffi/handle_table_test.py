"""native/ffi/handle-table.h: ids, and who ends an object when."""

import threading
from concurrent.futures import ThreadPoolExecutor

import _ffi_testing as ffi
import pytest

CONTEXT, STREAM = ffi.Kind.CONTEXT, ffi.Kind.STREAM


class Log(list):
    """What happened, in order; `log("x")` is a function that notes it."""

    def __call__(self, event):
        return lambda: self.append(event)


@pytest.fixture
def table():
    return ffi.HandleTable()


@pytest.fixture
def log():
    return Log()


def test_ids_are_small_distinct_and_never_reused(table):
    ids = []
    for _ in range(100):
        ids += [table.add(CONTEXT), table.add(STREAM)]
        assert table.close(CONTEXT, ids[-2])
    assert len(set(ids)) == 200
    assert all(0 < id < 2048 for id in ids)


def test_a_pin_on_anything_but_an_open_handle_of_the_kind_says_what_it_is(table):
    context, stream, closed = table.add(CONTEXT), table.add(STREAM), table.add(STREAM)
    table.close(STREAM, closed)
    for kind, id, name, what in [
        (STREAM, 0, "LLM stream", "NULL"),
        (STREAM, context, "LLM stream", f"{context} (context)"),
        (CONTEXT, stream, "context", f"{stream} (LLM stream)"),
        (STREAM, closed, "LLM stream", f"{closed} (closed LLM stream)"),
        (CONTEXT, closed, "context", f"{closed} (closed LLM stream)"),
        (CONTEXT, context + 8, "context", f"{context + 8} (no handle of this library)"),
        (CONTEXT, 5, "context", "5 (no handle of this library)"),
        (CONTEXT, 0x7F55_0000_1230, "context", f"{0x7F55_0000_1230} (no handle of this library)"),
    ]:
        with pytest.raises(ValueError, match="^-2: ") as error:
            table.pin(kind, id)
        assert f"expected an open {name}, got {what}; pass what eliza_inference_" in str(error.value)
        assert not table.close(kind, id)
    table.pin(CONTEXT, context).end()
    table.pin(STREAM, stream).end()


def test_close_stops_then_deletes_once(table, log):
    id = table.add(CONTEXT, log("stop"), log("delete"))
    table.pin(CONTEXT, id).end()
    assert log == []
    assert table.close(CONTEXT, id)
    assert not table.close(CONTEXT, id)
    assert log == ["stop", "delete"]


def test_close_waits_for_the_call_in_flight_on_another_thread(table, log):
    stopped, pinned = threading.Event(), threading.Event()
    id = table.add(STREAM, stopped.set, log("delete"))

    def call():
        pin = table.pin(STREAM, id)
        pinned.set()
        assert stopped.wait(60)
        with pytest.raises(ValueError, match="closed LLM stream"):
            table.pin(STREAM, id)
        log.append("call ends")
        pin.end()

    with ThreadPoolExecutor() as pool:
        running = pool.submit(call)
        assert pinned.wait(60)
        assert table.close(STREAM, id)
        assert log == ["call ends", "delete"]
        running.result()


def test_a_close_from_inside_a_call_lets_the_call_end_first(table, log):
    id = table.add(STREAM, log("stop"), log("delete"))
    pin = table.pin(STREAM, id)
    assert table.close(STREAM, id)  # as a callback would
    assert log == ["stop"]
    pin.end()
    assert log == ["stop", "delete"]


def test_children_are_stopped_and_deleted_before_their_parent_is_deleted(table, log):
    parent = table.add(CONTEXT, log("stop parent"), log("delete parent"))
    children = [table.add(STREAM, log(f"stop {i}"), log(f"delete {i}"), parent) for i in range(3)]
    other = table.add(CONTEXT)
    stranger = table.add(STREAM, parent=other)
    table.close(STREAM, children[1])
    assert log == ["stop 1", "delete 1"]
    assert table.close(CONTEXT, parent)
    assert log[2:] == ["stop parent", "stop 0", "delete 0", "stop 2", "delete 2", "delete parent"]
    table.pin(STREAM, stranger).end()


def test_a_parent_outlives_a_child_whose_call_is_in_flight(table, log):
    parent = table.add(CONTEXT, on_delete=log("delete parent"))
    child = table.add(STREAM, on_delete=log("delete child"), parent=parent)
    pin = table.pin(STREAM, child)
    assert table.close(CONTEXT, parent)  # returns, for this thread is in a call
    assert log == []
    pin.end()
    assert log == ["delete child", "delete parent"]


def test_nothing_is_added_under_a_parent_that_was_closed_meanwhile(table, log):
    parent = table.add(CONTEXT)
    pin = table.pin(CONTEXT, parent)
    table.close(CONTEXT, parent)
    with pytest.raises(ValueError, match="-7: the context was closed"):
        table.add(STREAM, on_delete=log("delete"), parent=parent)
    assert log == ["delete"]
    pin.end()


def test_of_many_closers_one_closes(table, log):
    for _ in range(50):
        log.clear()
        id = table.add(CONTEXT, log("stop"), log("delete"))
        for _ in range(4):
            table.add(STREAM, on_delete=log("delete child"), parent=id)
        with ThreadPoolExecutor(4) as pool:
            closed = list(pool.map(table.close, 4 * [CONTEXT], 4 * [id]))
        assert sorted(closed) == [False, False, False, True]
        assert log == ["stop"] + 4 * ["delete child"] + ["delete"]
