"""`python -m demo.figures groups` measures the speed of one group, and the cost of a blocked group for 1,000 groups.

Jobs of one group run one after another, so their speed depends on the calls of one job and on its way through the lane.
Turns alternate two ways: the worker continues with the next job itself, or each job waits for its message.
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

#: Number of jobs of the group in each turn, and number of turns for each way.
LENGTH: Final = 60
TURNS: Final = 3
#: The same for both ways. A worker continues while a whole run and the margin fit into the rest of its invocation.
JOB_TIMEOUT_SECONDS: Final = 1.0
GROUPS: Final = 1_000
MEMBERS: Final = 2
PATIENCE_SECONDS: Final = 120
POLL_SECONDS: Final = 1.0

NOOP: Final[Mapping[str, Any]] = {"type": "demo.flaky", "payload": {"failures": 0}}
#: This job dies and blocks its group: the type has `on_dead="block"`, and the depot never opens.
BLOCKING: Final[Mapping[str, Any]] = {"type": "demo.depot", "payload": {"ledger": "-", "number": 0, "opens_at": 1e12}}

LIMITS: Final = """\
The speeds hold for this machine, where a call takes a few milliseconds and
an empty lane delivers a message at once. The other jobs are those of groups
that are not blocked. Their wait runs from the moment at which a job is next in
its group to its claim; the table shows the median and the 99th percentile. It
grows with the backlog of the lane, whose workers share these processors."""


@dataclass(frozen=True, slots=True)
class GroupsResult:
    """The result of a thousand groups. The jobs and waits leave out the blocked groups."""

    #: Number of groups whose head died and blocks them.
    blocked: int
    jobs: Sequence[Job]
    #: Jobs that were claimed before the previous job of their group had finished.
    inversions: int
    #: Seconds from the moment at which a job was next in its group to its claim.
    waits: Sequence[float]
    #: Jobs of the blocked groups by state, when all other jobs had ended.
    blocked_states: Mapping[str, int]


class Groups:
    """Submits groups of jobs that do nothing to the deployed app, and measures them."""

    def __init__(self, app: App) -> None:
        self._app = app

    def follow(self, follows: bool) -> None:  # noqa: FBT001 - the setting itself
        """Set whether a worker continues with the next job of a group itself."""
        self._app.set_function_variable("work", Env.JOB_TIMEOUT_SECONDS, str(JOB_TIMEOUT_SECONDS))
        self._app.set_function_variable("work", Env.FOLLOW_GROUPS, str(follows).lower())
        # The first batch after a change of the configuration has a cold start.
        self.speed(length=5)

    def speed(self, *, length: int = LENGTH) -> float:
        """Jobs per second of one group, from the first claim to the last end. All are submitted before that."""
        group = uuid4().hex
        head = self._submit({**NOOP, "group": group, "delay_seconds": 900})
        for _ in range(length - 1):
            self._submit({**NOOP, "group": group})
        answer = self._app.request("POST", f"/jobs/{head}/cancel", body=b"{}")
        require(answer.status == HTTPStatus.OK, f"POST /jobs/{head}/cancel answered {answer.status}")
        jobs = self._ended(group, except_groups=())
        ran = [job for job in jobs if job.lease.claimed_at and job.finished_at]
        require(len(ran) == length - 1, f"{len(ran)} of {length - 1} jobs ran")
        begun = min(job.lease.claimed_at for job in ran if job.lease.claimed_at)
        return len(ran) / (max(job.finished_at for job in ran if job.finished_at) - begun).total_seconds()

    def run_groups(self, *, blocked: int) -> GroupsResult:
        """Run a thousand groups at once. The head of `blocked` of them dies and blocks its group."""
        run = uuid4().hex
        names = [f"{run} {number}" for number in range(GROUPS)]
        for member in range(MEMBERS):
            for start in range(0, GROUPS, LARGEST_BATCH):
                self._submit_batch(
                    [
                        {**(BLOCKING if member == 0 and group in names[:blocked] else NOOP), "group": group}
                        for group in names[start : start + LARGEST_BATCH]
                    ]
                )
        blocked_names = names[:blocked]
        jobs = self._ended(run, except_groups=blocked_names)
        require(len(jobs) == (GROUPS - blocked) * MEMBERS, f"{len(jobs)} jobs ended")
        chains = _chains(jobs)
        return GroupsResult(
            blocked,
            jobs,
            inversions=sum(later.lease.claimed_at < earlier.finished_at for earlier, later in _neighbours(chains)),
            waits=[wait for chain in chains for wait in _waits(chain)],
            blocked_states=Counter(job.state for job in all_jobs(self._app) if job.group.key in blocked_names),
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

    def _ended(self, prefix: str, *, except_groups: Sequence[str]) -> list[Job]:
        """Wait until all jobs of the groups with this prefix have ended, and return them."""

        def ended() -> list[Job] | None:
            time.sleep(POLL_SECONDS)  # reading the whole table loads this machine
            found = [job for job in all_jobs(self._app) if (job.group.key or "").startswith(prefix)]
            found = [job for job in found if job.group.key not in except_groups]
            return found if found and all(job.state.terminal for job in found) else None

        return wait_until(ended, PATIENCE_SECONDS, "the groups to end") or []


Chain = Sequence[Job]


def _chains(jobs: Sequence[Job]) -> list[Chain]:
    """The jobs of each group, in order of their sequence numbers."""
    chains: dict[str | None, list[Job]] = defaultdict(list)
    for job in sorted(jobs, key=lambda job: job.group.sequence or 0):
        chains[job.group.key].append(job)
    return list(chains.values())


def _neighbours(chains: Sequence[Chain]) -> Iterator[tuple[Any, Any]]:
    return (pair for chain in chains for pair in pairwise(chain))


def _waits(chain: Chain) -> Iterator[float]:
    turn = None
    for job in chain:
        if job.lease.claimed_at:
            yield (job.lease.claimed_at - max(turn or job.created_at, job.created_at)).total_seconds()
        turn = job.finished_at


def main() -> None:
    console = Console()
    with deployed(console) as app:
        groups = Groups(app)
        console.print(f"running one group of {LENGTH} jobs that do nothing, {TURNS} turns each way", highlight=False)
        speeds: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(TURNS):
            for follows, runs in speeds.items():
                groups.follow(follows)
                runs.append(groups.speed())
        groups.follow(True)
        console.print(
            f"running {GROUPS:,} groups of {MEMBERS} jobs each, without and with a blocked group", highlight=False
        )
        results = [groups.run_groups(blocked=0), groups.run_groups(blocked=1)]
    _report_speeds(console, speeds)
    _report_groups(console, results)
    console.print(LIMITS, highlight=False)


def _report_speeds(console: Console, speeds: Mapping[bool, Sequence[float]]) -> None:
    table = Table("next job of the group", "jobs/s, median", "jobs/s, each turn", title="One group")
    for follows, name in ((True, "run by the same worker"), (False, "waits for its message")):
        runs = speeds[follows]
        table.add_row(name, f"{statistics.median(runs):.1f}", ", ".join(f"{speed:.1f}" for speed in runs))
    console.print(table)
    ratios = [fast / slow for fast, slow in zip(speeds[True], speeds[False], strict=True)]
    console.print(
        f"continuing in the same worker is {statistics.median(ratios):.2f} times as fast (median of pairs)",
        highlight=False,
    )


def _report_groups(console: Console, results: Sequence[GroupsResult]) -> None:
    table = Table(
        *("blocked groups", "other jobs", "succeeded", "inversions", "wait s", "p99 s", "jobs of blocked groups"),
        title=f"{GROUPS:,} groups at once",
    )
    for result in results:
        succeeded = sum(job.state is State.SUCCEEDED for job in result.jobs)
        states = ", ".join(f"{count} {state}" for state, count in result.blocked_states.items()) or "-"
        p99 = statistics.quantiles(result.waits, n=100)[-1]
        median = statistics.median(result.waits)
        counts = (result.blocked, len(result.jobs), succeeded, result.inversions)
        table.add_row(*map(str, counts), f"{median:.2f}", f"{p99:.2f}", states)
    console.print(table)
