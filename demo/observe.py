"""What the demo can see of the deployed app: the documents, the letters, and the shortener's own counts."""

import contextlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from tidemill.domain.job import Job
from tidemill.dynamodb.document import decode
from tidemill.local.lifecycle import App
from tidemill.local.wait import WaitError, wait_until
from tidemill.names import JOB_KEY, Output

POLL_SECONDS: Final = 1.0
#: Longer than a killed worker's messages stay hidden: six function timeouts of three seconds.
PATIENCE_SECONDS: Final = 60.0


class StuckError(Exception):
    """Nothing has moved for longer than anything may take."""


def all_jobs(app: App) -> list[Job]:
    """The documents; the table also holds payloads, groups and limits, whose names begin with an exclamation mark."""
    pages = app.client("dynamodb").get_paginator("scan").paginate(TableName=app.outputs[Output.JOBS_TABLE])
    items = [item for page in pages for item in page["Items"]]
    return [decode(item) for item in items if not item[JOB_KEY]["S"].startswith("!")]


def dead_letters(app: App) -> int:
    """Messages in the dead-letter queues, seen and hidden."""
    names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    total = 0
    for urls in json.loads(app.outputs[Output.LANES]).values():
        answer = app.client("sqs").get_queue_attributes(QueueUrl=urls["dead_letters"], AttributeNames=list(names))
        total += sum(int(answer["Attributes"][name]) for name in names)
    return total


def await_jobs(app: App, *, done: Callable[[list[Job]], bool], show: Callable[[str], object]) -> list[Job]:
    """Poll until `done`, showing the counts whenever they change. Raises `StuckError` when they do not for too long."""
    last, moved_at = "", time.monotonic()
    while True:
        jobs = all_jobs(app)
        counts = ", ".join(f"{count} {state}" for state, count in sorted(Counter(job.state for job in jobs).items()))
        progress = f"{counts} {sum(job.generation for job in jobs)}"
        if progress != last:
            last, moved_at = progress, time.monotonic()
            show(counts)
        if done(jobs):
            return jobs
        if time.monotonic() - moved_at > PATIENCE_SECONDS:
            raise StuckError(f"nothing has moved for {PATIENCE_SECONDS:.0f} s: {counts}")
        time.sleep(POLL_SECONDS)


def await_letters(app: App, expected: int) -> int:
    """Wait for the dead-letter queues to hold so many; return what they hold in the end."""
    with contextlib.suppress(WaitError):
        wait_until(lambda: dead_letters(app) == expected, PATIENCE_SECONDS, f"{expected} letters")
    return dead_letters(app)


def terminal(jobs: Iterable[Job]) -> bool:
    return all(job.state.terminal for job in jobs)
