"""`python -m demo.figures flood` measures the start latency of critical jobs, without and with a flood of bulk jobs.

One run alternates two turns. Each submits a few critical jobs, one while the bulk lane is paused, and one while it runs
the flood. A control turn then submits such a flood to the critical lane, to show the effect of separate lanes.
"""

import json
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from demo.figures.require import require
from demo.observe import all_jobs
from tidemill.domain.job import Job
from tidemill.local.lifecycle import App, deployed
from tidemill.local.wait import wait_until
from tidemill.names import LARGEST_BATCH, Lane, Output

#: Number of jobs in the flood, and duration of each. They only sleep, so they leave the processor to the critical jobs.
FLOOD: Final = 1_000
SECONDS: Final = 1.2
#: Enough jobs to show the effect of a queue in front of a critical job.
CONTROL_FLOOD: Final = 200
#: Critical jobs in each turn, and the time between two of them.
CRITICAL_JOBS: Final = 25
INTERVAL_SECONDS: Final = 0.25
TURNS: Final = 3
PATIENCE_SECONDS: Final = 120

LIMITS: Final = """\
Start latency is the time from the moment at which a job may run to its claim, both read from its document. Here all
lanes share one process of the emulator and the processors of this host, so the flood also slows the critical jobs by
its load on this machine. On AWS, the lanes share only the concurrency of the account and the table. The emulator does
not simulate SQS fair queues, so the control has one tenant. On AWS, a flood delays its own tenant first."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of one turn. Latencies in seconds."""

    name: str
    latencies: Sequence[float]
    #: Number of jobs of the flood that started during the turn.
    flooded: int

    @property
    def median(self) -> float:
        return statistics.median(self.latencies)

    @property
    def p95(self) -> float:
        return statistics.quantiles(self.latencies, n=20)[-1]


class Flood:
    """Submits the flood and the critical jobs to the deployed app, and pauses and resumes its bulk lane."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._lambda = app.client("lambda")
        self._mapping = app.mapping(f"work-{Lane.BULK}")
        self._queues = {lane: urls["queue"] for lane, urls in json.loads(app.outputs[Output.LANES]).items()}

    def fill_bulk_lane(self) -> None:
        """Submit the flood while the worker of the bulk lane is paused."""
        self._lambda.update_event_source_mapping(UUID=self._mapping, Enabled=False)
        self._submit(FLOOD, lane=Lane.BULK)
        self._await_depth(Lane.BULK, FLOOD)

    @contextmanager
    def bulk_lane_running(self) -> Iterator[None]:
        self._lambda.update_event_source_mapping(UUID=self._mapping, Enabled=True)
        try:
            yield
        finally:
            self._lambda.update_event_source_mapping(UUID=self._mapping, Enabled=False)
            time.sleep(2 * SECONDS)  # until the running jobs have ended

    def fill_critical_lane(self) -> None:
        self._submit(CONTROL_FLOOD, lane=Lane.CRITICAL)

    def turn(self, name: str) -> Turn:
        """Submit critical jobs, wait for the last to end, and measure their latencies."""
        began = self._claimed()
        ids = set()
        for _ in range(CRITICAL_JOBS):
            answer = self._app.request("POST", "/jobs", body=json.dumps({"type": "demo.wait"}).encode())
            require(answer.status == HTTPStatus.ACCEPTED, f"POST /jobs answered {answer.status}")
            ids.add(answer.json()["id"])
            time.sleep(INTERVAL_SECONDS)

        def ended() -> list[Job] | None:
            found = [job for job in all_jobs(self._app) if job.id in ids]
            return found if all(job.state.terminal for job in found) else None

        jobs = wait_until(ended, PATIENCE_SECONDS, "the critical jobs to end") or []
        latencies = [
            (job.lease.claimed_at - job.lease.ready_at).total_seconds()
            for job in jobs
            if job.lease.claimed_at and job.lease.ready_at
        ]
        return Turn(name, latencies, self._claimed() - began - len(ids))

    def _claimed(self) -> int:
        return sum(job.lease.claimed_at is not None for job in all_jobs(self._app))

    def _submit(self, count: int, *, lane: Lane) -> None:
        job = {"type": "demo.wait", "lane": lane, "payload": {"seconds": SECONDS}}
        for start in range(0, count, LARGEST_BATCH):
            body: dict[str, Any] = {"jobs": [job] * min(LARGEST_BATCH, count - start)}
            answer = self._app.request("POST", "/jobs/batch", body=json.dumps(body).encode())
            require(answer.status < HTTPStatus.BAD_REQUEST, f"POST /jobs/batch answered {answer.status}")

    def _await_depth(self, lane: Lane, depth: int) -> None:
        def full() -> bool:
            answer = self._app.client("sqs").get_queue_attributes(
                QueueUrl=self._queues[lane], AttributeNames=["ApproximateNumberOfMessages"]
            )
            return int(answer["Attributes"]["ApproximateNumberOfMessages"]) >= depth

        wait_until(full, PATIENCE_SECONDS, f"the {lane} lane to hold {depth} jobs")


def main() -> None:
    console = Console()
    with deployed(console) as app:
        flood = Flood(app)
        console.print(f"submitting a flood of {FLOOD} bulk jobs of {SECONDS} s each", highlight=False)
        flood.fill_bulk_lane()
        flood.turn("warming up")
        with flood.bulk_lane_running():
            time.sleep(2 * SECONDS)
        turns = []
        for _ in range(TURNS):
            turns.append(flood.turn("paused"))
            with flood.bulk_lane_running():
                turns.append(flood.turn("on the bulk lane"))
        console.print(f"submitting {CONTROL_FLOOD} of the same jobs on the critical lane", highlight=False)
        flood.fill_critical_lane()
        turns.append(flood.turn("on the critical lane"))
    _report(console, turns)


def _report(console: Console, turns: Sequence[Turn]) -> None:
    table = Table("flood", "flood jobs started", "median ms", "p95 ms", title="Start latency of critical jobs")
    for turn in turns:
        table.add_row(turn.name, str(turn.flooded), f"{turn.median * 1000:.0f}", f"{turn.p95 * 1000:.0f}")
    console.print(table)
    paused, flooded, control = (_joined(turns, name) for name in dict.fromkeys(turn.name for turn in turns))
    for turn in (flooded, control):
        console.print(
            f"flood {turn.name}: median {turn.median / paused.median:.2f} times the median with the flood paused, "
            f"p95 {turn.p95 / paused.p95:.2f} times its p95",
            highlight=False,
            soft_wrap=True,
        )
    console.print(LIMITS, highlight=False, soft_wrap=True)


def _joined(turns: Sequence[Turn], name: str) -> Turn:
    same = [turn for turn in turns if turn.name == name]
    return Turn(name, [latency for turn in same for latency in turn.latencies], sum(turn.flooded for turn in same))
