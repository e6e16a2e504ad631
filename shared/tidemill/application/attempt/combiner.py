"""Combines the requests of the threads of one batch of messages, so that one of them does the work for several."""

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from tidemill.domain.errors import TidemillError

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Combiner(Generic[Request, Answer]):
    """Begins to work once each expected thread has a request or has left, or one has waited for the longest time.

    A thread that comes later begins another round: with the others that come then, or alone.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Request]], Sequence[Answer]],
        *,
        expected: Iterable[object],
        longest_wait_seconds: float,
        batch_of: Callable[[Request], tuple[Hashable, int]],
    ) -> None:
        """`work` answers each request of a batch, in their order. Another thread may work for another batch.

        `batch_of` gives the key of the batch of a request, and the most that it holds. A further one begins the next.
        """
        self._work = work
        self._longest_wait_seconds = longest_wait_seconds
        self._batch_of = batch_of
        #: Held for each use of the fields below.
        self._lock = threading.Lock()
        self._expected = set(expected)
        self._round = _Round()

    def combine(self, request: Request, *, by: object) -> Answer:
        """The answer to the request of the thread `by`. Returns once it is there. Raises what `work` raises."""
        pending = _Pending(request)
        with self._lock:
            round_ = self._round
            round_.pending.append(pending)
        self.leave(by)
        if not round_.begun.wait(self._longest_wait_seconds):
            with self._lock:
                if round_ is self._round:
                    self._begin()
        answer: Answer = pending.batch.answer_to(pending, self._work)
        return answer

    def leave(self, by: object) -> None:
        """This thread has no request. No-op if it is not expected."""
        with self._lock:
            self._expected.discard(by)
            if not self._expected:
                self._begin()

    def _begin(self) -> None:
        """The lock is held."""
        round_, self._round = self._round, _Round()
        open_batches: dict[Hashable, _Batch] = {}
        for pending in round_.pending:
            key, most = self._batch_of(pending.request)
            batch = open_batches.get(key)
            if batch is None or len(batch.pending) >= most:
                batch = open_batches[key] = _Batch()
            batch.pending.append(pending)
            pending.batch = batch
        round_.begun.set()


class _Round:
    def __init__(self) -> None:
        self.pending: list[_Pending] = []
        self.begun = threading.Event()


class _Pending:
    """The request of one thread. `batch` is set when the round begins."""

    batch: "_Batch"

    def __init__(self, request: Any) -> None:
        self.request = request
        self.answer: Any = None


class _Batch:
    """The requests for which one thread works: that of the first one."""

    def __init__(self) -> None:
        self.pending: list[_Pending] = []
        self._ended = threading.Event()
        self._worked = False

    def answer_to(self, pending: _Pending, work: Callable[[Sequence[Any]], Sequence[Any]]) -> Any:
        if pending is self.pending[0]:
            try:
                answers = work([each.request for each in self.pending])
                for each, answer in zip(self.pending, answers, strict=True):
                    each.answer = answer
                self._worked = True
            finally:
                self._ended.set()
        self._ended.wait()
        if not self._worked:
            raise TidemillError("the thread that worked for this one and others failed")
        return pending.answer
