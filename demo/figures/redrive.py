"""`python -m demo.figures redrive` measures the redrive of one dead job beside an empty and a full dead-letter queue.

Each command is a process of its own, which counts its calls to AWS.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from demo.figures.require import require
from tidemill.domain.dispatch.job_message import DeadLetter, Reference
from tidemill.local.lifecycle import App, deployed
from tidemill.local.wait import wait_until
from tidemill.names import Lane, Output
from tidemill.sqs import messages
from tidemill.sqs.lanes import BATCH_LIMIT

MESSAGES: Final = 5_000
TURNS: Final = 3
PATIENCE_SECONDS: Final = 120
#: Runs the command line, and then prints its calls to AWS as the last line of stderr.
COUNTED: Final = """
import atexit, json, sys
from collections import Counter
import boto3
from tidemill.cli.main import main

calls = Counter()
setup = boto3.setup_default_session

def counted(**settings):
    setup(**settings)
    events = boto3.DEFAULT_SESSION.events
    events.register("before-call", lambda model, **_: calls.update([model.name]))

boto3.setup_default_session = counted
atexit.register(lambda: print(json.dumps(calls), file=sys.stderr))
main()
"""

LIMITS: Final = """\
The seconds are those of a process, from its start to its end, on this machine.
`--help` makes no call: it shows the share that starts Python and loads the
command. The calls are those of one redrive, and each run must make the same."""


@dataclass(frozen=True, slots=True)
class Redrives:
    #: The depth of the dead-letter queue before or after the runs, the lower of both.
    messages: int
    seconds: Sequence[float]
    calls: Mapping[str, int]


def main() -> None:
    console = Console()
    with deployed(console) as app:
        figure = Figure(app)
        starts = [figure.run("redrive", "--help")[0] for _ in range(TURNS)]
        empty = figure.redrives()
        console.print(f"sending {MESSAGES:,} messages to the dead-letter queue", highlight=False)
        figure.fill(MESSAGES)
        full = figure.redrives()
    _report(console, starts, [empty, full])


class Figure:
    def __init__(self, app: App) -> None:
        self._app = app
        self._queue = json.loads(app.outputs[Output.LANES])[Lane.DEFAULT]["dead_letters"]

    def fill(self, number: int) -> None:
        """Send the messages of `number` dead jobs."""
        bodies = iter(_bodies(number))
        sqs = self._app.client("sqs")
        while entries := [
            {"Id": str(at), "MessageBody": body} for at, body in zip(range(BATCH_LIMIT), bodies, strict=False)
        ]:
            answer = sqs.send_message_batch(QueueUrl=self._queue, Entries=entries)
            require(not answer.get("Failed"), "SendMessageBatch refused messages")

    def redrives(self) -> Redrives:
        """Let one job die after another, and redrive each."""
        depth = self._depth()
        seconds: list[float] = []
        calls: list[Mapping[str, int]] = []
        for _ in range(TURNS):
            job_id = self._dead_job()
            took, made = self.run("redrive", job_id, "--yes", "--reason", "a measurement")
            seconds.append(took)
            calls.append(made)
        require(all(made == calls[0] for made in calls), f"the runs made different calls: {calls}")
        return Redrives(min(depth, self._depth()), seconds, calls[0])

    def run(self, *arguments: str) -> tuple[float, Mapping[str, int]]:
        """Seconds and calls of one command."""
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", COUNTED, *arguments],
            env=self._app.caller.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        took = time.monotonic() - began
        require(done.returncode == 0, f"tidemill {' '.join(arguments)} failed: {done.stderr}")
        return took, json.loads(done.stderr.splitlines()[-1])

    def _dead_job(self) -> str:
        body = json.dumps({"type": "demo.give_up", "payload": {"guest": "Ada"}}).encode()
        answer = self._app.request("POST", "/jobs", body=body)
        require(answer.status == HTTPStatus.ACCEPTED, f"POST /jobs answered {answer.status}")
        job_id = str(answer.json()["id"])

        def dead() -> bool:
            return bool(self._app.request("GET", f"/jobs/{job_id}").json()["state"] == "dead")

        wait_until(dead, PATIENCE_SECONDS, f"job {job_id} to die")
        return job_id

    def _depth(self) -> int:
        """Messages of the dead-letter queue, visible or in flight."""
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        answer = self._app.client("sqs").get_queue_attributes(QueueUrl=self._queue, AttributeNames=list(names))
        return sum(int(answer["Attributes"][name]) for name in names)


def _bodies(number: int) -> Iterator[str]:
    for _ in range(number):
        reference = Reference(tenant="111122223333:AROAEXAMPLE", job_id=str(uuid4()), generation=1, trace="")
        letter = DeadLetter(
            reference=reference, type="mail.send", death="gave up", error_class="ValueError", attempts=1
        )
        yield messages.encode(letter)


def _report(console: Console, starts: Sequence[float], runs: Sequence[Redrives]) -> None:
    table = Table("DLQ messages", "seconds, median", "each run", "calls to AWS", title="Redrive of one job")
    table.add_row("(--help)", f"{statistics.median(starts):.2f}", _each(starts), "0")
    for run in runs:
        calls = ", ".join(f"{count} {name}" for name, count in sorted(run.calls.items()))
        table.add_row(str(run.messages), f"{statistics.median(run.seconds):.2f}", _each(run.seconds), calls)
    console.print(table)
    console.print(LIMITS, highlight=False)


def _each(seconds: Sequence[float]) -> str:
    return ", ".join(f"{each:.2f}" for each in seconds)
