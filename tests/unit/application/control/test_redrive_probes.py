"""Probes: which jobs they are, what their ends mean, and which jobs follow."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, SETTLEMENTS, a_job, brought_to, claimed, stored, with_changes
from tests.support.single_job import Clock
from tidemill.application.control import redrive_probes as module
from tidemill.application.control.redrive_probes import Cause, Probe, Probes, ProbeVerdict, verdict_of
from tidemill.application.ports import JobStore
from tidemill.domain.job import AttemptError, DeathReason, Job
from tidemill.domain.states import State

_TIMEOUT = timedelta(seconds=10)


def _error(message: str, *, seconds: float = 0, attempt: int = 1) -> AttemptError:
    at = NOW + timedelta(seconds=seconds)
    return AttemptError(attempt=attempt, at=at, error_class="ValueError", message=message, retryable=True)


def _dead(message: str = "row 1 is gone", **changes: Any) -> Job:
    return a_job(state=State.DEAD, generation=1, finished_at=NOW, due=None, errors=(_error(message),), **changes)


def _probes(store: Any = None, clock: Callable[[], Any] = lambda: NOW, pause: Any = None) -> Probes:
    return Probes(store=store, clock=clock, pause=pause, timeout=_TIMEOUT)


def test_one_job_of_each_type_and_error_is_a_probe() -> None:
    jobs = [_dead("row 1 is gone"), _dead("row 2 is gone"), _dead("disk full"), _dead("disk full", type="other")]

    assert _probes().choose(jobs) == [jobs[0], jobs[2], jobs[3]]


def test_an_undeliverable_job_is_not_a_probe_for_the_error_before_its_death() -> None:
    lost, failed = _dead(death=DeathReason.UNDELIVERABLE), _dead(death=DeathReason.EXHAUSTED)

    assert _probes().choose([lost, failed]) == [lost, failed]


def test_a_probe_overtakes_no_job_of_its_group() -> None:
    first, behind = _dead("a", group="g", sequence=1), _dead("b", group="g", sequence=2)
    alone = _dead("b")

    assert _probes().choose([first, behind]) == [first]
    assert _probes().choose([first, behind, alone]) == [first, alone]


def test_a_job_without_a_group_is_preferred() -> None:
    grouped, alone = _dead(group="g", sequence=1), _dead()

    assert _probes().choose([grouped, alone, _dead()]) == [alone]


def test_the_number_of_probes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PROBES", 2)
    jobs = [_dead(name) for name in ("a", "b", "c", "a")]
    probes = _probes()

    assert probes.choose(jobs) == jobs[:2]
    _settle(probes, ProbeVerdict.SUCCEEDED)
    assert list(probes.approved(jobs[2:])) == [jobs[3]]
    assert probes.held == 1


def _redriven(job: Job, **changes: Any) -> Job:
    return with_changes(job, **{"state": State.RUNNING, "generation": 2, "finished_at": None, **changes})


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"state": State.SUCCEEDED}, ProbeVerdict.SUCCEEDED),
        ({"state": State.DEAD}, ProbeVerdict.FAILED),
        ({"state": State.CANCELLED}, ProbeVerdict.GONE),
        ({"created_at": NOW + SECOND}, ProbeVerdict.GONE),
        ({"state": State.QUEUED}, None),
        ({"state": State.RUNNING}, None),
        # The retries of another error may help; those of the same one are the fault that the operator meant to fix.
        ({"state": State.RETRYING, "errors": (_error("row 1 is gone"), _error("timeout", seconds=9))}, None),
        (
            {"state": State.RETRYING, "errors": (_error("row 1 is gone"), _error("row 7 is gone", seconds=9))},
            ProbeVerdict.FAILED,
        ),
    ],
)
def test_a_verdict_follows_from_the_document(changes: Any, verdict: ProbeVerdict | None) -> None:
    dead = _dead()

    assert verdict_of(dead, _redriven(dead, **changes)) is verdict


def test_a_deleted_probe_is_gone() -> None:
    assert verdict_of(_dead(), None) is ProbeVerdict.GONE


def _settle(probes: Probes, verdict: ProbeVerdict, *causes: Cause) -> None:
    for cause in causes or probes.probes:
        probes.probes[cause].verdict = verdict


def test_the_others_follow_only_a_probe_that_succeeded() -> None:
    good, bad = [_dead("good") for _ in range(3)], [_dead("bad") for _ in range(3)]
    probes = _probes()
    probes.choose([*good, *bad])
    _settle(probes, ProbeVerdict.SUCCEEDED, ("test.job", "ValueError: good"))
    _settle(probes, ProbeVerdict.UNFINISHED, ("test.job", "ValueError: bad"))

    assert list(probes.approved([*good[1:], *bad[1:]])) == good[1:]
    assert (probes.held, probes.all_succeeded) == (2, False)


def test_a_job_that_stays_dead_keeps_those_behind_it_in_its_group() -> None:
    jobs = [_dead("good", group="g", sequence=1), _dead("bad", group="g", sequence=2)]
    jobs += [_dead("good", group="g", sequence=3), _dead("good", group="h", sequence=1), _dead("bad")]
    probes = _probes()
    probes.choose(jobs)
    _settle(probes, ProbeVerdict.SUCCEEDED, ("test.job", "ValueError: good"))
    _settle(probes, ProbeVerdict.FAILED, ("test.job", "ValueError: bad"))

    assert list(probes.approved(jobs)) == [jobs[0], jobs[3]]
    assert probes.held == 3


def test_a_group_whose_probe_failed_stays_dead() -> None:
    probe, behind, other = _dead("bad", group="g", sequence=1), _dead("good", group="g", sequence=2), _dead("good")
    probes = _probes()
    probes.choose([probe, behind, other])
    _settle(probes, ProbeVerdict.SUCCEEDED, ("test.job", "ValueError: good"))
    _settle(probes, ProbeVerdict.FAILED, ("test.job", "ValueError: bad"))

    assert list(probes.approved([behind])) == []


def test_it_waits_until_each_probe_has_ended(store: JobStore, clock: Clock) -> None:
    jobs = [brought_to(store, State.DEAD, type=name) for name in ("one", "two", "three")]
    ends = [State.SUCCEEDED, State.DEAD]
    waited: list[float] = []

    def pause(seconds: float) -> None:
        """Each second, one job runs."""
        waited.append(seconds)
        clock.now += timedelta(seconds=seconds)
        if ends:
            running = claimed(store, stored(store, jobs[len(waited) - 1]), now=clock.now)
            store.settle(running, SETTLEMENTS[ends.pop(0)], now=clock.now)

    probes = _probes(store, clock, pause)
    for job in probes.choose(jobs):
        store.redrive(job, token="redrive", now=clock.now, by="ada")
        probes.redriven(job)
    ended: list[tuple[str, ProbeVerdict | None]] = []

    probes.wait(lambda probe: ended.append((probe.job.type, probe.verdict)))

    assert ended == [("one", ProbeVerdict.SUCCEEDED), ("two", ProbeVerdict.FAILED), ("three", ProbeVerdict.UNFINISHED)]
    assert sum(waited) == _TIMEOUT / SECOND


def test_a_probe_that_another_operator_redrove_approves_nothing(store: JobStore, clock: Clock) -> None:
    (job,) = jobs = [brought_to(store, State.DEAD)]
    probes = _probes(store, clock)
    ended: list[Probe] = []

    probes.choose(jobs)
    probes.wait(ended.append)

    assert [(probe.job, probe.verdict) for probe in ended] == [(job, ProbeVerdict.NOT_REDRIVEN)]


__all__: Sequence[str] = ()
