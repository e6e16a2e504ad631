"""`python -m demo.figures flood`: how long urgent jobs wait for their start, without and with a flood of bulk jobs.

One run, in turns: a trickle of critical jobs while the flood is held back, and one while it is let loose. Then the
control, which shows what the lanes are for: the same flood on the trickle's own lane.
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

#: Jobs of the flood, and how long each waits: for nothing, so that it takes no processor from the trickle.
FLOOD: Final = 1_000
SECONDS: Final = 1.2
#: The control needs no more to show a queue in front of a job.
CONTROL_FLOOD: Final = 200
#: Urgent jobs in each turn, and the time between two.
TRICKLE: Final = 25
INTERVAL_SECONDS: Final = 0.25
TURNS: Final = 3
PATIENCE_SECONDS: Final = 120

LIMITS: Final = """\
Start latency is from the moment a job may run to its claim, as its document says. Here all lanes share one process of
the emulator and the processors of this host, so what the flood adds is what its traffic costs this machine; on AWS the
lanes share the account's concurrency and the table and nothing else. The emulator does not simulate SQS fair queues,
so the control is one tenant's; on AWS a flood of one tenant holds up that tenant first."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn of the trickle came to. Latencies in seconds."""

    name: str
    latencies: Sequence[float]
    #: Jobs of the flood that ran meanwhile.
    flooded: int

    @property
    def median(self) -> float:
        return statistics.median(self.latencies)

    @property
    def p95(self) -> float:
        return statistics.quantiles(self.latencies, n=20)[-1]


class Flood:
    """The deployed app, and a flood in front of its bulk lane."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._lambda = app.client("lambda")
        mappings = self._lambda.list_event_source_mappings(FunctionName=app.functions[f"work-{Lane.BULK}"])
        (self._mapping,) = (mapping["UUID"] for mapping in mappings["EventSourceMappings"])
        self._queues = {lane: urls["queue"] for lane, urls in json.loads(app.outputs[Output.LANES]).items()}

    def rise(self) -> None:
        """Fill the bulk lane while nobody works on it."""
        self._lambda.update_event_source_mapping(UUID=self._mapping, Enabled=False)
        self._submit(FLOOD, lane=Lane.BULK)
        self._await_depth(Lane.BULK, FLOOD)

    @contextmanager
    def loose(self) -> Iterator[None]:
        self._lambda.update_event_source_mapping(UUID=self._mapping, Enabled=True)
        try:
            yield
        finally:
            self._lambda.update_event_source_mapping(UUID=self._mapping, Enabled=False)
            time.sleep(2 * SECONDS)  # until those that have begun have ended

    def rise_on_the_critical_lane(self) -> None:
        self._submit(CONTROL_FLOOD, lane=Lane.CRITICAL)

    def turn(self, name: str) -> Turn:
        """One trickle from its first job to the end of its last."""
        began = self._claimed()
        ids = set()
        for _ in range(TRICKLE):
            answer = self._app.request("POST", "/jobs", body=json.dumps({"type": "demo.wait"}).encode())
            require(answer.status == HTTPStatus.ACCEPTED, f"POST /jobs answered {answer.status}")
            ids.add(answer.json()["id"])
            time.sleep(INTERVAL_SECONDS)

        def ended() -> list[Job] | None:
            found = [job for job in all_jobs(self._app) if job.id in ids]
            return found if all(job.state.terminal for job in found) else None

        jobs = wait_until(ended, PATIENCE_SECONDS, "the trickle to end") or []
        latencies = [(job.claimed_at - job.ready_at).total_seconds() for job in jobs if job.claimed_at and job.ready_at]
        return Turn(name, latencies, self._claimed() - began - len(ids))

    def _claimed(self) -> int:
        return sum(job.claimed_at is not None for job in all_jobs(self._app))

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
        console.print(f"submitting a flood of {FLOOD} bulk jobs that wait {SECONDS} s each", highlight=False)
        flood.rise()
        flood.turn("warming up")
        with flood.loose():
            time.sleep(2 * SECONDS)
        turns = []
        for _ in range(TURNS):
            turns.append(flood.turn("held back"))
            with flood.loose():
                turns.append(flood.turn("on its own lane"))
        console.print(f"submitting {CONTROL_FLOOD} of the same jobs on the critical lane", highlight=False)
        flood.rise_on_the_critical_lane()
        turns.append(flood.turn("on the critical lane"))
    _report(console, turns)


def _report(console: Console, turns: Sequence[Turn]) -> None:
    table = Table("the flood", "its jobs meanwhile", "median ms", "p95 ms", title="Start latency of critical jobs")
    for turn in turns:
        table.add_row(turn.name, str(turn.flooded), f"{turn.median * 1000:.0f}", f"{turn.p95 * 1000:.0f}")
    console.print(table)
    quiet, flooded, control = (_joined(turns, name) for name in dict.fromkeys(turn.name for turn in turns))
    for turn in (flooded, control):
        console.print(
            f"with the flood {turn.name}: median {turn.median / quiet.median:.2f} times, "
            f"p95 {turn.p95 / quiet.p95:.2f} times what they are without",
            highlight=False,
            soft_wrap=True,
        )
    console.print(LIMITS, highlight=False, soft_wrap=True)


def _joined(turns: Sequence[Turn], name: str) -> Turn:
    same = [turn for turn in turns if turn.name == name]
    return Turn(name, [latency for turn in same for latency in turn.latencies], sum(turn.flooded for turn in same))
