"""How long a redrive waits for its probes, when it looks at them, and what it says of each."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, an_error
from tidemill.application.control.redrive_probes import MOST_PROBES, Probe, Probes, ProbeVerdict
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State


def dead(cause: str, **changes: Any) -> Job:
    error = an_error(message=cause)
    return a_job(**{"id": cause, "state": State.DEAD, "finished_at": NOW, "due": None, "errors": (error,)} | changes)


class World:
    """The jobs, by the second at which each succeeds, and a clock that only a pause moves."""

    def __init__(self, ends: dict[str, int], *, redriven: str = "", timeout: float = 3) -> None:
        self.now = NOW
        self.pauses: list[float] = []
        self.looks: list[list[str]] = []
        self.jobs = {name: dead(name) for name in ends}
        self.ends = ends
        self.said: list[tuple[str, ProbeVerdict | None]] = []
        store: Any = self
        self.probes = Probes(store=store, clock=lambda: self.now, pause=self.pause, timeout=timedelta(seconds=timeout))
        self.probes.choose(self.jobs.values())
        for name in redriven:
            self.probes.redriven(self.jobs[name])

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += timedelta(seconds=seconds)

    def get_many(self, keys: list[tuple[str, str]]) -> list[Job]:
        self.looks.append([job_id for _, job_id in keys])
        found = [self.jobs[job_id] for _, job_id in keys]
        return [
            replace(job, state=State.SUCCEEDED if self.now >= NOW + self.ends[job.id] * SECOND else State.RUNNING)
            for job in found
        ]

    def wait(self) -> None:
        def ended(probe: Probe) -> None:
            self.said.append((probe.job.id, probe.verdict))

        self.probes.wait(ended)


GOOD, LATE, NOT = ProbeVerdict.SUCCEEDED, ProbeVerdict.UNFINISHED, ProbeVerdict.NOT_REDRIVEN


@pytest.mark.parametrize(
    ("ends", "redriven", "said", "looks", "pauses"),
    [
        ({"a": 0}, "a", [("a", GOOD)], [["a"]], 0),
        ({"a": 2}, "a", [("a", GOOD)], [["a"]] * 3, 2),
        # The last look is at the end of the wait.
        ({"a": 3}, "a", [("a", GOOD)], [["a"]] * 4, 3),
        ({"a": 4}, "a", [("a", LATE)], [["a"]] * 4, 3),
        ({"a": 0, "b": 1}, "ab", [("a", GOOD), ("b", GOOD)], [["a", "b"], ["b"]], 1),
        ({"a": 3, "b": 9}, "ab", [("a", GOOD), ("b", LATE)], [["a", "b"]] * 4, 3),
        ({"a": 0, "b": 0}, "b", [("a", NOT), ("b", GOOD)], [["b"]], 0),
        ({"a": 0}, "", [("a", NOT)], [], 0),
    ],
    ids=["at once", "later", "just in time", "late", "two", "one in time", "one not redriven", "none redriven"],
)
def test_each_second_the_probes_are_looked_at_whose_end_is_not_known(
    ends: dict[str, int], redriven: str, said: list[Any], looks: list[list[str]], pauses: int
) -> None:
    world = World(ends, redriven=redriven)

    world.wait()

    assert world.said == said
    assert world.looks == looks
    assert world.pauses == [1.0] * pauses
    assert world.probes.all_succeeded is ({verdict for _, verdict in said} == {GOOD})


@pytest.mark.parametrize("verdict", [*ProbeVerdict, None])
def test_all_have_succeeded_only_if_each_has(verdict: ProbeVerdict | None) -> None:
    world = World({"a": 0, "b": 0})
    first, second = world.probes.probes.values()
    first.verdict, second.verdict = ProbeVerdict.SUCCEEDED, verdict
    assert world.probes.all_succeeded is (verdict is ProbeVerdict.SUCCEEDED)


def chosen(*jobs: Job) -> list[str]:
    return [job.id for job in World({}).probes.choose(jobs)]


@pytest.mark.parametrize(
    ("jobs", "probes"),
    [
        ([dead("x", id="1"), dead("x", id="2")], ["1"]),
        ([dead("x", id="1", group="g"), dead("x", id="2")], ["2"]),
        ([dead("x", id="1", group="g"), dead("x", id="2"), dead("x", id="3")], ["2"]),
        # Neither is better, so the first one stays.
        ([dead("x", id="1", group="g"), dead("x", id="2", group="h")], ["1"]),
        ([dead("x", id="1"), dead("x", id="2", group="g")], ["1"]),
        ([dead("x", id="1", group="g"), dead("y", id="2", group="g")], ["1"]),
        ([dead("x", id="1", group="g"), dead("y", id="2", group="h")], ["1", "2"]),
        ([dead("x", id="1", group="g"), dead("y", id="2", group="g", tenant="other")], ["1", "2"]),
    ],
)
def test_the_first_job_without_a_group_is_the_probe_of_its_cause_or_the_first_of_a_group(
    jobs: list[Job], probes: list[str]
) -> None:
    assert chosen(*jobs) == probes


def test_a_redrive_has_at_most_a_hundred_probes() -> None:
    assert MOST_PROBES == 100
    # Each error has words of its own, since numbers make no difference.
    causes = [first + second for first in "abcdefghijk" for second in "lmnopqrstu"]
    assert chosen(*(dead(cause) for cause in causes)) == causes[:100]
