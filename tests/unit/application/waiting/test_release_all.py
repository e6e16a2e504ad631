"""Wake releases every line: in random order, until each gives no more, and past one that fails."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import Barrier
from typing import Any, Final

import pytest

from tests.support.builders import A_WAIT, NOW, a_job
from tests.support.configurations import configured, paused
from tests.support.patience import PATIENCE_SECONDS
from tests.support.single_job import Clock
from tidemill.application.ports import WHOLE, Part
from tidemill.application.waiting import release
from tidemill.application.waiting.release import Released, Releaser
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError, TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.limits.limit_state import MOST_AT_ONCE
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Line

LINE: Final = A_WAIT.line
OTHER: Final = Line(Cause.LIMIT, "another")


@pytest.fixture(autouse=True)
def one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the order is known."""
    monkeypatch.setattr(release, "_AT_ONCE", 1)


def parked() -> Job:
    return a_job(state=State.PARKED, wait=A_WAIT)


@dataclass
class Lines:
    """Lines, and what a release of each gives."""

    releases: dict[Line, list[list[Job] | Exception]]
    parts: list[Part] = field(default_factory=list)
    taken: list[Line] = field(default_factory=list)

    def lines(self, part: Part) -> Iterator[Line]:
        self.parts.append(part)
        return iter(self.releases)

    def release(self, line: Line) -> list[Job]:
        self.taken.append(line)
        result = self.releases[line].pop(0) if self.releases[line] else []
        if isinstance(result, Exception):
            raise result
        return result


def released(
    lines: Lines,
    in_time: Callable[[], bool] = lambda: True,
    draws: Sequence[float] = (),
    configuration: RuntimeConfiguration = NOTHING_SET,
    lacks_type: Callable[[str], bool] = lambda _name: False,
) -> Released:
    class AllLines(Releaser):
        def release(self, line: Line, **_changes: Any) -> list[Job]:
            return lines.release(line)

    remaining = [*draws]
    store: Any = None  # unused
    limits: Any = lines
    releaser = AllLines(
        store=store, limits=limits, clock=Clock(), configuration=lambda: configuration, lacks_type=lacks_type
    )
    return releaser.release_all(part=WHOLE, in_time=in_time, draw=lambda: remaining.pop(0) if remaining else 0.5)


def test_wake_releases_each_line_until_it_gives_less_than_a_full_release() -> None:
    full, rest = [parked() for _ in range(MOST_AT_ONCE)], [parked()]
    lines = Lines({LINE: [full, rest], OTHER: []})

    assert released(lines) == Released(jobs=(*full, *rest))
    assert lines.taken == [LINE, OTHER, LINE]
    assert len(lines.parts) == 1


def test_a_line_with_more_jobs_than_wake_has_time_for_takes_no_time_of_the_others() -> None:
    full, job = [parked() for _ in range(MOST_AT_ONCE)], parked()
    third = Line(Cause.LIMIT, "third")
    lines = Lines({LINE: [full] * 100, OTHER: [[job]], third: []})
    left = iter([True] * 16)  # for each round, and for each of its lines

    found = released(lines, in_time=lambda: next(left, False))

    assert lines.taken == [LINE, OTHER, third, *[LINE] * 6]
    assert (job in found.jobs, len(found.jobs), found.left) == (True, 7 * MOST_AT_ONCE + 1, 1)


def test_once_the_time_is_over_the_other_lines_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be hundreds of thousands, and the scheduled jobs come after them."""
    monkeypatch.setattr(release, "_LINES_BETWEEN_CHECKS", 2)
    lines = Lines({Line(Cause.LIMIT, str(number)): [[parked()]] for number in range(9)})
    asked: list[bool] = []

    def in_time() -> bool:
        asked.append(len(asked) < 3)
        return asked[-1]

    found = released(lines, in_time=in_time)

    assert (len(found.jobs), found.left, asked) == (2, 7, [True, True, True, False])


def test_wake_does_not_ask_whether_a_line_stands_without_time_for_it() -> None:
    """The configuration may hang."""
    lines = Lines({Line(Cause.TYPE, name): [] for name in ("a", "b")})
    left = iter([True])

    found = released(lines, in_time=lambda: next(left, False), lacks_type=_must_not_be_asked)

    assert (lines.taken, found.left) == ([], 2)


def _must_not_be_asked(name: str) -> bool:
    raise AssertionError(name)


def test_wake_looks_at_several_lines_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    all_here = Barrier(4)

    class Together(Lines):
        def release(self, line: Line) -> list[Job]:
            all_here.wait(PATIENCE_SECONDS)
            return super().release(line)

    lines = Together({Line(Cause.LIMIT, str(number)): [[parked()]] for number in range(8)})

    assert len(released(lines).jobs) == 8


def test_wake_takes_the_lines_in_random_order() -> None:
    lines = Lines({LINE: [], OTHER: []})

    released(lines, draws=[0.9, 0.1])

    assert lines.taken == [OTHER, LINE]


def test_one_line_that_cannot_be_released_stops_no_other() -> None:
    error = MalformedDocumentError("newer")
    third = Line(Cause.LIMIT, "third")
    job = parked()
    lines = Lines({LINE: [StoreUnavailableError("busy")], OTHER: [error], third: [[job]]})

    assert released(lines) == Released(jobs=(job,), left=1, failed=(error,))


def test_a_line_whose_job_is_in_a_transaction_is_left_to_the_next_call() -> None:
    """An alarm reports damaged items, and this one is sound."""
    job = parked()
    lines = Lines({LINE: [TransactionConflictError("busy")], OTHER: [[job]]})

    assert released(lines) == Released(jobs=(job,), left=1)


def test_lines_for_which_no_time_is_left_are_counted() -> None:
    lines = Lines({LINE: [], OTHER: []})

    assert released(lines, in_time=lambda: False) == Released(left=2)
    assert lines.taken == []


def test_the_line_of_a_pause_is_left_alone_until_its_end() -> None:
    configuration = configured(paused("type=a"), paused("type=b", at=NOW - timedelta(hours=1), until=NOW))
    stands, ended = Line.for_pause("type=a"), Line.for_pause("type=b")
    lines = Lines({stands: [], ended: [], Line(Cause.LIMIT, "type=a"): []})

    released(lines, configuration=configuration)

    assert lines.taken == [ended, Line(Cause.LIMIT, "type=a")]


def test_with_a_stale_configuration_the_line_of_any_pause_may_stand() -> None:
    lines = Lines({Line.for_pause("type=a"): [], Line(Cause.LIMIT, "type=a"): []})

    released(lines, configuration=replace(NOTHING_SET, stale=True))

    assert lines.taken == [Line(Cause.LIMIT, "type=a")]


def test_the_line_of_a_type_is_left_alone_until_the_type_is_loaded() -> None:
    lacking, loaded = Line.for_type("mail.welcome"), Line.for_type("mail.bye")
    lines = Lines({lacking: [], loaded: [], Line(Cause.LIMIT, "mail.welcome"): []})

    released(lines, lacks_type={"mail.welcome"}.__contains__)

    assert lines.taken == [loaded, Line(Cause.LIMIT, "mail.welcome")]


def test_job_types_that_cannot_be_read_stop_no_other_line() -> None:
    error = ValueError("no setting")
    lines = Lines({Line.for_type("mail.welcome"): [], LINE: []})

    def fails(_name: str) -> bool:
        raise error

    assert released(lines, lacks_type=fails) == Released(failed=(error,))
    assert lines.taken == [LINE]
