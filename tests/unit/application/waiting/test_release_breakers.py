"""What a release does for the line of a breaker, and what a worker does for the line of a job that it has ended."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from tests.support.builders import A_WAIT, NOW, SECOND, a_job
from tests.support.single_job import Clock
from tests.unit.application.waiting.test_release import World, parked
from tests.unit.application.waiting.test_release_adaptive import TOKEN, an_adaptive_slot
from tidemill.application.ports import WHOLE
from tidemill.application.waiting import release
from tidemill.application.waiting.release import Releaser
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.limits.adaptive_limit import ConcurrencyChange
from tidemill.domain.limits.limit_state import reservation_name, run_name
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Cause, Line, Wait

LINE: Final = Line(Cause.BREAKER, "payments")
RATE: Final = Rate(count=2, period=SECOND)


class Breakers:
    """One breaker, and what it was asked."""

    def __init__(self, *, holds: bool = True, forced: bool = False) -> None:
        self.holds, self.is_forced = holds, forced
        self.kept_open: list[str] = []
        self.rates: list[datetime] = []

    def holds_line(self, name: str) -> bool:
        assert name == "payments"
        return self.holds

    def forced(self, name: str) -> bool:
        assert name == "payments"
        return self.is_forced

    def keep_open(self, name: str) -> None:
        self.kept_open.append(name)

    def open_for(self, name: str) -> timedelta:
        assert name == "payments"
        return 5 * SECOND

    def drain_rate(self, name: str, *, at: datetime) -> Rate:
        assert name == "payments"
        self.rates.append(at)
        return RATE


class Spied(Releaser):
    """Notes each release, or raises `error` at it."""

    def __init__(self, breakers: Any = None, error: Exception | None = None) -> None:
        unused: Any = None
        super().__init__(store=unused, limits=unused, clock=Clock(), breakers=breakers)
        self.error = error
        self.calls: list[tuple[str, Line, dict[str, Any]]] = []

    def release(self, line: Line, **changes: Any) -> list[Job]:
        return self._note("release", line, changes)

    def _note(self, name: str, line: Line, changes: dict[str, Any]) -> list[Job]:
        self.calls.append((name, line, changes))
        if self.error:
            raise self.error
        return []


class SpiedAtBreaker(Spied):
    def release_from_breaker(self, line: Line, *, parked: Job | None = None) -> list[Job]:
        return self._note("breaker", line, {"parked": parked})


def waiting_for(cause: Cause) -> Job:
    return a_job(wait=Wait(cause=cause, key="payments", since=NOW))


@pytest.mark.parametrize("error", [None, StoreUnavailableError("busy")])
@pytest.mark.parametrize("cause", list(Cause))
def test_a_job_that_ends_before_its_run_passes_its_turn_on_in_the_line_of_a_limit_or_breaker(
    cause: Cause, error: Exception | None
) -> None:
    releaser, job = SpiedAtBreaker(error=error), waiting_for(cause)
    line = Line(cause, "payments")

    releaser.pass_on(job)
    releaser.look_again(job)

    assert releaser.calls == {
        Cause.LIMIT: [
            ("release", line, {"leaving": reservation_name(job.tenant, job.id)}),
            ("release", line, {"parked": job}),
        ],
        Cause.BREAKER: [("breaker", line, {"parked": None}), ("breaker", line, {"parked": job})],
    }.get(cause, [])


@pytest.mark.parametrize("breakers", [None, Breakers(holds=False)])
@pytest.mark.parametrize("job", [None, parked()])
def test_the_line_of_a_closed_breaker_is_released_as_any_other(breakers: Breakers | None, job: Job | None) -> None:
    releaser = Spied(breakers)
    assert releaser.release_from_breaker(LINE, parked=job) == []
    assert releaser.calls == [("release", LINE, {"parked": job})]


def test_a_breaker_that_an_operator_keeps_open_elects_no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "elect_probe", lambda *_, **__: pytest.fail("no probe"))
    breakers = Breakers(forced=True)
    assert Spied(breakers).release_from_breaker(LINE) == []
    assert breakers.kept_open == ["payments"]


@pytest.mark.parametrize("probe", [None, parked()])
@pytest.mark.parametrize("job", [None, parked()])
def test_an_open_breaker_gets_one_probe_at_most(
    probe: Job | None, job: Job | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def elect(line: Line, **more: Any) -> Job | None:
        asked.append((line, more["breakers"], more["parked"]))
        return probe

    monkeypatch.setattr(release, "elect_probe", elect)
    breakers = Breakers()
    releaser = Spied(breakers)

    assert releaser.release_from_breaker(LINE, parked=job) == ([probe] if probe else [])
    assert (asked, breakers.kept_open, releaser.calls) == ([(LINE, breakers, job)], [], [])


@pytest.mark.parametrize(
    ("breakers", "causes", "longest"),
    [
        (Breakers(), [Cause.BREAKER], 5),
        # One of them is not the longest.
        (Breakers(), [Cause.BREAKER, Cause.LIMIT], 5),
        (Breakers(), [Cause.LIMIT, Cause.SIGNAL, Cause.TYPE], 0),
        (None, [Cause.BREAKER], 0),
    ],
)
def test_wake_releases_the_line_of_a_breaker_by_its_rules_and_says_how_long_it_has_been_open(
    breakers: Breakers | None, causes: list[Cause], longest: int
) -> None:
    class Limits:
        def lines(self, _part: Any) -> Any:
            return iter([Line(cause, "payments") for cause in causes])

    releaser = SpiedAtBreaker(breakers)
    releaser._limits = Limits()  # type: ignore[assignment]
    result = releaser.release_all(part=WHOLE, in_time=lambda: True, draw=lambda: 0.5)
    assert (result.breaker_open, result.failed) == (longest * SECOND, ())
    assert [name for name, _, _ in releaser.calls] == [
        "breaker" if cause is Cause.BREAKER else "release" for cause in causes
    ]


@pytest.mark.parametrize(("promised", "at"), [(NOW - SECOND, NOW), (NOW + SECOND, NOW + SECOND)])
def test_the_line_of_a_breaker_drains_at_the_rate_of_the_time_that_its_next_job_gets(
    promised: datetime, at: datetime
) -> None:
    breakers = Breakers()
    world = World(line=LINE)
    releaser = Releaser(store=world, limits=world, clock=Clock(), breakers=breakers)  # type: ignore[arg-type]
    state: Any = type("State", (), {"limit": None, "promised": promised, "last_tenant": None})()

    assert releaser._in_force(LINE, state, None, NOW) == Limit(rate=RATE)
    assert breakers.rates == [at]
    assert releaser._in_force(A_WAIT.line, state, Limit(concurrency=3), NOW) == Limit(concurrency=3)


def test_without_breakers_the_line_of_one_has_the_limit_of_its_item() -> None:
    world = World(line=LINE)
    state: Any = type("State", (), {"limit": Limit(concurrency=2), "promised": NOW, "last_tenant": None})()

    assert world.releaser._in_force(LINE, state, None, NOW) == Limit(concurrency=2)


@pytest.mark.parametrize("seconds", [5, 0.5])
@pytest.mark.parametrize("frees", [True, False])
def test_a_run_without_a_line_changes_the_number_as_it_leaves_and_tells_a_decrease_once(
    frees: bool, seconds: float
) -> None:
    world, reported = World(frees=frees), list[ConcurrencyChange]()
    world.state = replace(world.state, marked=False, held={run_name(TOKEN): NOW})
    slot = an_adaptive_slot(seconds=seconds)

    world.releaser.leave(slot, line_stands=False, lowered=reported.append)

    [(released, change)] = world.called("release")
    assert released is slot
    assert bool(change.lowered) is (seconds > 1)
    # A line has come meanwhile: then the release of it changes the number.
    assert reported == ([change] if seconds > 1 and not frees else [])


@pytest.mark.parametrize(
    "changed",
    [lambda slot: replace(slot, sample=None), lambda slot: replace(slot, limit=Limit(concurrency=2))],
    ids=["the handler did not run", "the limit adapts no more"],
)
def test_a_run_that_measured_nothing_of_use_only_frees_its_slot(changed: Callable[[Any], Any]) -> None:
    world, reported = World(frees=False), list[ConcurrencyChange]()
    slot = changed(an_adaptive_slot(seconds=5))
    world.releaser.leave(slot, line_stands=False, lowered=reported.append)
    assert (world.called("release"), reported) == ([(slot,)], [])
