"""`python -m demo.figures groups`: how fast one group goes, and what a bad group costs a thousand others.

Jobs of one group run one after another, so their speed is what a job's calls and its way through the lane take. It is
measured in turns with the worker going on to the next job itself and with each job left to its message.
"""

import json
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import pairwise
from typing import Any, Final
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from demo.figures.require import require
from demo.observe import all_jobs
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.local.lifecycle import App, deployed
from tidemill.local.wait import wait_until
from tidemill.names import LARGEST_BATCH, Env

#: Jobs of the one group in each turn, and how often each way has its turn.
LENGTH: Final = 60
TURNS: Final = 3
#: The same for both ways. A worker goes on while a whole run and the margin fit into what is left of its invocation.
JOB_TIMEOUT_SECONDS: Final = 1.0
GROUPS: Final = 1_000
MEMBERS: Final = 2
PATIENCE_SECONDS: Final = 120
POLL_SECONDS: Final = 1.0

NOOP: Final[Mapping[str, Any]] = {"type": "demo.flaky", "payload": {"failures": 0}}
#: Its type blocks, and the depot never opens.
POISON: Final[Mapping[str, Any]] = {"type": "demo.depot", "payload": {"ledger": "-", "number": 0, "opens_at": 1e12}}

LIMITS: Final = """\
The speeds are this machine's, where a call takes a few milliseconds and an
empty lane hands a message over at once. An innocent is a job of any other
group; its wait, in the median, is from when it was its turn to its claim. It
grows with the backlog of the lane, whose workers share these processors."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """What a thousand groups came to, the bad ones left out."""

    #: Groups whose head died and blocks.
    poisonous: int
    jobs: Sequence[Job]
    inversions: int
    #: Seconds from when it was a job's turn to its claim.
    waits: Sequence[float]
    #: States of the jobs of bad groups when all others had ended.
    bad: Mapping[str, int]


class Groups:
    """The deployed app, and groups of jobs that do nothing."""

    def __init__(self, app: App) -> None:
        self._app = app

    def follow(self, follows: bool) -> None:  # noqa: FBT001 - the setting itself
        self._app.set_function_variable("work", Env.JOB_TIMEOUT_SECONDS, str(JOB_TIMEOUT_SECONDS))
        self._app.set_function_variable("work", Env.FOLLOW_GROUPS, str(follows).lower())
        # The first batch of a new version starts cold.
        self.speed(length=5)

    def speed(self, *, length: int = LENGTH) -> float:
        """Jobs per second of one group, from the first claim to the last end; all are there before the first begins."""
        group = uuid4().hex
        head = self._submit({**NOOP, "group": group, "delay_seconds": 900})
        for _ in range(length - 1):
            self._submit({**NOOP, "group": group})
        answer = self._app.request("POST", f"/jobs/{head}/cancel", body=b"{}")
        require(answer.status == HTTPStatus.OK, f"cancelling the head answered {answer.status}")
        jobs = self._ended(group, but=())
        ran = [job for job in jobs if job.claimed_at and job.finished_at]
        require(len(ran) == length - 1, f"{len(ran)} of {length - 1} jobs ran")
        begun = min(job.claimed_at for job in ran if job.claimed_at)
        return len(ran) / (max(job.finished_at for job in ran if job.finished_at) - begun).total_seconds()

    def crowd(self, *, poisonous: int) -> Crowd:
        """A thousand groups at once; so many of them have a head that dies and blocks."""
        run = uuid4().hex
        names = [f"{run} {number}" for number in range(GROUPS)]
        for member in range(MEMBERS):
            for start in range(0, GROUPS, LARGEST_BATCH):
                self._submit_batch(
                    [
                        {**(POISON if member == 0 and group in names[:poisonous] else NOOP), "group": group}
                        for group in names[start : start + LARGEST_BATCH]
                    ]
                )
        bad = names[:poisonous]
        jobs = self._ended(run, but=bad)
        require(len(jobs) == (GROUPS - poisonous) * MEMBERS, f"{len(jobs)} jobs ended")
        chains = _chains(jobs)
        return Crowd(
            poisonous,
            jobs,
            inversions=sum(later.claimed_at < earlier.finished_at for earlier, later in _neighbours(chains)),
            waits=[wait for chain in chains for wait in _waits(chain)],
            bad=Counter(job.state for job in all_jobs(self._app) if job.group in bad),
        )

    def _submit(self, job: Mapping[str, Any]) -> str:
        answer = self._app.request("POST", "/jobs", body=json.dumps(job).encode())
        require(answer.status == HTTPStatus.ACCEPTED, f"POST /jobs answered {answer.status}")
        return str(answer.json()["id"])

    def _submit_batch(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        answer = self._app.request("POST", "/jobs/batch", body=json.dumps({"jobs": jobs}).encode())
        require(answer.status == HTTPStatus.OK, f"POST /jobs/batch answered {answer.status}")
        statuses = Counter(each["status"] for each in answer.json()["jobs"])
        require(set(statuses) == {HTTPStatus.ACCEPTED}, f"POST /jobs/batch answered {dict(statuses)}")

    def _ended(self, prefix: str, *, but: Sequence[str]) -> list[Job]:
        """The jobs of the groups so called, once all have ended."""

        def ended() -> list[Job] | None:
            time.sleep(POLL_SECONDS)  # reading the whole table takes its share of this machine
            found = [job for job in all_jobs(self._app) if (job.group or "").startswith(prefix)]
            found = [job for job in found if job.group not in but]
            return found if found and all(job.state.terminal for job in found) else None

        return wait_until(ended, PATIENCE_SECONDS, "the groups to end") or []


Chain = Sequence[Job]


def _chains(jobs: Sequence[Job]) -> list[Chain]:
    """The jobs of each group in the order accepted."""
    chains: dict[str | None, list[Job]] = defaultdict(list)
    for job in sorted(jobs, key=lambda job: job.sequence or 0):
        chains[job.group].append(job)
    return list(chains.values())


def _neighbours(chains: Sequence[Chain]) -> Iterator[tuple[Any, Any]]:
    return (pair for chain in chains for pair in pairwise(chain))


def _waits(chain: Chain) -> Iterator[float]:
    turn = None
    for job in chain:
        if job.claimed_at:
            yield (job.claimed_at - max(turn or job.created_at, job.created_at)).total_seconds()
        turn = job.finished_at


def main() -> None:
    console = Console()
    with deployed(console) as app:
        groups = Groups(app)
        console.print(f"one group of {LENGTH} jobs that do nothing, {TURNS} turns each way", highlight=False)
        speeds: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(TURNS):
            for follows, runs in speeds.items():
                groups.follow(follows)
                runs.append(groups.speed())
        groups.follow(True)
        console.print(f"{GROUPS:,} groups of {MEMBERS} jobs", highlight=False)
        crowds = [groups.crowd(poisonous=0), groups.crowd(poisonous=1)]
    _report_speeds(console, speeds)
    _report_crowds(console, crowds)
    console.print(LIMITS, highlight=False)


def _report_speeds(console: Console, speeds: Mapping[bool, Sequence[float]]) -> None:
    table = Table("the next job of the group", "jobs/s, median", "of the turns", title="One group")
    for follows, name in ((True, "its worker goes on to it"), (False, "left to its message")):
        runs = speeds[follows]
        table.add_row(name, f"{statistics.median(runs):.1f}", ", ".join(f"{speed:.1f}" for speed in runs))
    console.print(table)
    ratios = [fast / slow for fast, slow in zip(speeds[True], speeds[False], strict=True)]
    console.print(f"going on is {statistics.median(ratios):.2f} times as fast (median of pairs)", highlight=False)


def _report_crowds(console: Console, crowds: Sequence[Crowd]) -> None:
    table = Table(
        *("bad", "innocents", "succeeded", "inversions", "wait s", "p99 s", "jobs of the bad"),
        title=f"{GROUPS:,} groups at once",
    )
    for crowd in crowds:
        succeeded = sum(job.state is State.SUCCEEDED for job in crowd.jobs)
        bad = ", ".join(f"{count} {state}" for state, count in crowd.bad.items()) or "-"
        p99 = statistics.quantiles(crowd.waits, n=100)[-1]
        median = statistics.median(crowd.waits)
        counts = (crowd.poisonous, len(crowd.jobs), succeeded, crowd.inversions)
        table.add_row(*map(str, counts), f"{median:.2f}", f"{p99:.2f}", bad)
    console.print(table)
