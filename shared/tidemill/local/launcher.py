"""Starts the emulator, inside its own environment: `python launcher.py FOLDER [--tied]`.

Mends what would bend a test or a figure and leaves all else as it is. Imports nothing of ours: its environment has the
emulator and boto3 and no more.
"""
# ruff: noqa: SLF001 - what is to be mended is private

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partialmethod
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

#: The figures about queues are published this often (AWS does so once a minute), and kept for half an hour.
METRICS_SECONDS: Final = 5.0
METRICS_KEPT: Final = 360
#: Long enough to catch the line of a handler that prints, too short to be felt by the many that do not.
FIRST_LINE_SECONDS: Final = 0.004
#: Says that a worker runs an invocation: a file of this name in its folder.
BUSY: Final = "busy"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", help="of the instance; also how its process is found again")
    parser.add_argument("--tied", action="store_true", help="end when standard input does, as its owner ends")
    tied = parser.parse_args().tied
    sys.argv = sys.argv[:1]
    settings = frozenset(os.environ) - {"PATH", "LANG", "HOME", "TMPDIR"}

    from ministack import app  # noqa: PLC0415 - reads its settings when imported
    from ministack.core import lambda_runtime  # noqa: PLC0415

    keep_settings_from_functions(lambda_runtime, settings)
    mark_busy_workers(lambda_runtime.Worker)
    drain_at_once(lambda_runtime.Worker)
    threading.Thread(target=publish_queue_metrics, daemon=True).start()
    if tied:
        threading.Thread(target=end_with_owner, daemon=True).start()
    app.main()


def keep_settings_from_functions(runtime: Any, settings: frozenset[str]) -> None:
    """A worker gets the whole environment of the emulator: leave out what only the emulator is meant to read."""

    def popen(command: list[str], *, env: dict[str, str], **options: Any) -> Any:
        own = {name: value for name, value in env.items() if name not in settings or value != os.environ.get(name)}
        return subprocess.Popen(command, env=own, **options)

    runtime.subprocess = SimpleNamespace(**(vars(subprocess) | {"Popen": popen}))


def mark_busy_workers(worker: Any) -> None:
    """Let who wants to kill a worker in the middle of its work tell it from an idle one."""
    spawn, invoke = worker._spawn, worker.invoke

    def marking_spawn(self: Any) -> None:
        spawn(self)
        Path(self._tmpdir, BUSY).touch()

    def marking_invoke(self: Any, *arguments: Any, **options: Any) -> Any:
        if self._proc:
            Path(self._tmpdir, BUSY).touch()
        try:
            return invoke(self, *arguments, **options)
        finally:
            Path(self._tmpdir, BUSY).unlink(missing_ok=True)

    worker._spawn, worker.invoke = marking_spawn, marking_invoke


def drain_at_once(worker: Any) -> None:
    """After an invocation that printed nothing the emulator waits 50 ms for it to print: 18 calls a second, not 150."""
    worker._drain_stderr_bounded = partialmethod(worker._drain_stderr_bounded, first_line_wait=FIRST_LINE_SECONDS)


def publish_queue_metrics() -> None:
    """What AWS publishes about queues and the emulator does not, read off its own lists without touching them."""
    while True:
        time.sleep(METRICS_SECONDS)
        from ministack.services import cloudwatch, sqs  # noqa: PLC0415 - not while the server starts

        now = time.time()
        for url, queue in sqs._queues.items():
            dimensions = {"QueueName": url.rsplit("/", 1)[-1]}
            for name, (value, unit) in queue_figures(list(queue["messages"]), now).items():
                points = cloudwatch._metric_bucket(("AWS/SQS", name, cloudwatch._dims_key(dimensions)))
                points.append({"Timestamp": now, "Unit": unit, "Dimensions": dimensions, "Value": float(value)})
                del points[:-METRICS_KEPT]


def queue_figures(messages: list[dict[str, Any]], now: float) -> dict[str, tuple[float, str]]:
    """The values and units of the metrics of one queue. `now` and the times in `messages` are epoch seconds."""
    hidden = [message for message in messages if message.get("visible_at", 0) > now]
    in_flight = sum(message.get("receive_count", 0) > 0 for message in hidden)
    return {
        "ApproximateNumberOfMessagesVisible": (len(messages) - len(hidden), "Count"),
        "ApproximateNumberOfMessagesNotVisible": (in_flight, "Count"),
        "ApproximateNumberOfMessagesDelayed": (len(hidden) - in_flight, "Count"),
        "ApproximateAgeOfOldestMessage": (
            now - min((message.get("sent_at", now) for message in messages), default=now),
            "Seconds",
        ),
    }


def end_with_owner() -> None:
    """The owner holds the other end of our standard input, and loses it however it ends."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
