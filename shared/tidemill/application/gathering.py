"""Gathers what the threads of one batch of messages bring, so that one of them does the work for several."""

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from tidemill.domain.errors import TidemillError

Brought = TypeVar("Brought")
Answer = TypeVar("Answer")


class Gathering(Generic[Brought, Answer]):
    """Begins to work once each expected thread has brought something or left, or one has waited for the longest time.

    A thread that comes later begins another round: with the others that come then, or alone.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Brought]], Sequence[Answer]],
        *,
        expected: Iterable[object],
        longest_wait_seconds: float,
        party: Callable[[Brought], tuple[Hashable, int]],
    ) -> None:
        """`work` answers each that a party has brought, in their order. Another thread may work for another party.

        `party` names the party of what was brought, and the most that it holds. A further one begins the next party.
        """
        self._work = work
        self._longest_wait_seconds = longest_wait_seconds
        self._party = party
        #: Held for each use of the fields below.
        self._lock = threading.Lock()
        self._expected = set(expected)
        self._round = _Round()

    def bring(self, brought: Brought, *, by: object) -> Answer:
        """The answer to what was brought. Returns once it is there. Raises what `work` raises."""
        place = _Place(brought)
        with self._lock:
            round_ = self._round
            round_.places.append(place)
        self.leave(by)
        if not round_.begun.wait(self._longest_wait_seconds):
            with self._lock:
                if round_ is self._round:
                    self._begin()
        answer: Answer = place.party.answer_to(place, self._work)
        return answer

    def leave(self, by: object) -> None:
        """This thread brings nothing. No-op if it is not expected."""
        with self._lock:
            self._expected.discard(by)
            if not self._expected:
                self._begin()

    def _begin(self) -> None:
        """The lock is held."""
        round_, self._round = self._round, _Round()
        open_parties: dict[Hashable, _Party] = {}
        for place in round_.places:
            name, most = self._party(place.brought)
            party = open_parties.get(name)
            if party is None or len(party.places) >= most:
                party = open_parties[name] = _Party()
            party.places.append(place)
            place.party = party
        round_.begun.set()


class _Round:
    def __init__(self) -> None:
        self.places: list[_Place] = []
        self.begun = threading.Event()


class _Place:
    """What one thread has brought. `party` is set when the round begins."""

    party: "_Party"

    def __init__(self, brought: Any) -> None:
        self.brought = brought
        self.answer: Any = None


class _Party:
    """Those for whom one thread works: the first one."""

    def __init__(self) -> None:
        self.places: list[_Place] = []
        self._ended = threading.Event()
        self._worked = False

    def answer_to(self, place: _Place, work: Callable[[Sequence[Any]], Sequence[Any]]) -> Any:
        if place is self.places[0]:
            try:
                answers = work([one.brought for one in self.places])
                for one, answer in zip(self.places, answers, strict=True):
                    one.answer = answer
                self._worked = True
            finally:
                self._ended.set()
        self._ended.wait()
        if not self._worked:
            raise TidemillError("the thread that worked for this one and others failed")
        return place.answer
