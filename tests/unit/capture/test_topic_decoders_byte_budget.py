"""Documents in memory stay within a limit, although their sizes are known only once they have been read."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Event, Thread

from pulsar_advisor.capture.topic_decoders import ByteBudget

LIMIT = 100


class Reader:
    """A thread that waits for room for one document and then keeps it until it is released."""

    def __init__(self, budget: ByteBudget, size: int) -> None:
        self.inside, self._leave = Event(), Event()
        self._thread = Thread(target=self._read, args=(budget, size))
        self._thread.start()

    def _read(self, budget: ByteBudget, size: int) -> None:
        with budget.room() as settle:
            settle(size)
            self.inside.set()
            self._leave.wait(10)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join()


def sized(budget: ByteBudget, size: int) -> None:
    """Let the budget see one document of this size."""
    with budget.room() as settle:
        settle(size)


def test_as_many_documents_come_in_as_fit_by_the_largest_so_far() -> None:
    budget = ByteBudget(LIMIT)
    sized(budget, 40)
    first, second = Reader(budget, 40), Reader(budget, 40)
    assert first.inside.wait(10)
    assert second.inside.wait(10)
    third = Reader(budget, 40)
    assert not third.inside.wait(0.05)
    first.leave()
    assert third.inside.wait(10)
    second.leave()
    third.leave()


def test_a_quarter_of_the_limit_is_kept_for_a_document_while_none_was_seen() -> None:
    budget = ByteBudget(LIMIT)
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(budget.room())
        fifth = Reader(budget, 1)
        assert not fifth.inside.wait(0.05)
    assert fifth.inside.wait(10)
    fifth.leave()


def test_a_document_larger_than_the_limit_comes_in_alone() -> None:
    budget = ByteBudget(LIMIT)
    sized(budget, 3 * LIMIT)
    large = Reader(budget, 3 * LIMIT)
    assert large.inside.wait(10)
    small = Reader(budget, 1)
    assert not small.inside.wait(0.05)
    large.leave()
    assert small.inside.wait(10)
    small.leave()


def test_a_document_that_turns_out_larger_waits_while_it_arrives() -> None:
    budget = ByteBudget(LIMIT)
    sized(budget, 1)  # so that the next ones come in at once
    some_came, all_came = Event(), Event()

    def read() -> None:
        with budget.room():
            budget.arrive(30)
            some_came.set()
            budget.arrive(30)
            all_came.set()

    with budget.room():
        budget.arrive(60)
        other = Thread(target=read)
        other.start()
        assert some_came.wait(10)
        assert not all_came.wait(0.05)
    assert all_came.wait(10)
    other.join()


def test_the_oldest_document_never_waits() -> None:
    budget = ByteBudget(LIMIT)
    all_came = Event()

    def read() -> None:
        with budget.room():
            budget.arrive(10 * LIMIT)
            all_came.set()

    Thread(target=read, daemon=True).start()
    assert all_came.wait(10)


def test_what_is_read_outside_of_a_room_is_not_counted() -> None:
    budget = ByteBudget(LIMIT)
    sized(budget, LIMIT // 2)
    budget.arrive(10 * LIMIT)
    with budget.room():
        small = Reader(budget, 1)
        assert small.inside.wait(10)
        small.leave()
