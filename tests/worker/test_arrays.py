"""What the table of arrays says of itself."""

import functools
import gc
import threading
import weakref
from concurrent.futures import Future

from everstep.wire.errors import Code, Failure
from everstep.worker.arrays import Arrays, Stored, Unmade, when_done


def test_bytes_count_whether_or_not_somebody_has_asked_for_the_array() -> None:
    arrays = Arrays()
    there, pending, failed = Future[Stored](), Future[Stored](), Future[Stored]()
    there.set_result(Stored("f32", None, None, 32))
    failed.set_exception(Failure(Code.UNKNOWN, "it did not work"))
    for number, entry in enumerate([Stored("f32", None, None, 8), there, pending, failed, Failure(Code.UNKNOWN, "nor did this")]):
        arrays.set(number, entry)
    assert arrays.nbytes() == 40
    pending.set_result(Stored("f32", None, None, 2))
    assert arrays.nbytes() == 42


def test_a_cancelled_placeholder_holds_nothing() -> None:
    """The heartbeat lists what there is, and each may be deleted before it is looked at."""
    unmade = Unmade()
    unmade.cancel()
    arrays = Arrays()
    arrays.set(1, unmade)
    assert arrays.nbytes() == 0


def test_what_was_waited_for_is_let_go() -> None:
    """At once, not when Python looks for circles: arrays hang on it."""
    future: Future[None] = Future()
    held = threading.Event()
    here = weakref.ref(held)
    when_done([future], functools.partial(lambda event, _: event.set(), held, future))
    future.set_result(None)
    assert held.is_set()
    gc.disable()
    try:
        del held
        assert here() is None
    finally:
        gc.enable()
