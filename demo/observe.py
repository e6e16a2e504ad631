"""Reads the deployed app for the demo: the job documents and the dead-letter messages."""

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
from tidemill.names import CANARY_TYPE, JOB_KEY, Output

POLL_SECONDS: Final = 1.0
#: Longer than a killed worker's messages stay hidden: six function timeouts of three seconds.
PATIENCE_SECONDS: Final = 60.0


class NoProgressError(Exception):
    """The jobs have not changed for longer than any step may take, or a step failed."""


def all_jobs(app: App) -> list[Job]:
    """All job documents but the canaries, which come by themselves.

    The keys of the other items (payloads, groups, limits) begin with an exclamation mark.
    """
    pages = app.client("dynamodb").get_paginator("scan").paginate(TableName=app.outputs[Output.JOBS_TABLE])
    items = [item for page in pages for item in page["Items"]]
    jobs = [decode(item) for item in items if not item[JOB_KEY]["S"].startswith("!")]
    return [job for job in jobs if job.type != CANARY_TYPE]


def dead_letter_messages(app: App) -> int:
    """Number of messages in all dead-letter queues, visible or in flight."""
    names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    total = 0
    for urls in json.loads(app.outputs[Output.LANES]).values():
        answer = app.client("sqs").get_queue_attributes(QueueUrl=urls["dead_letters"], AttributeNames=list(names))
        total += sum(int(answer["Attributes"][name]) for name in names)
    return total


def await_jobs(app: App, *, done: Callable[[list[Job]], bool], show: Callable[[str], object]) -> list[Job]:
    """Poll until `done`, and show the counts after each change. Raises `NoProgressError` after too long without one."""
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
            raise NoProgressError(f"no job has changed for {PATIENCE_SECONDS:.0f} s: {counts}")
        time.sleep(POLL_SECONDS)


def await_dead_letter_messages(app: App, expected: int) -> int:
    """Wait until the dead-letter queues hold `expected` messages. Return their number, also after a timeout."""
    with contextlib.suppress(WaitError):
        wait_until(lambda: dead_letter_messages(app) == expected, PATIENCE_SECONDS, f"{expected} dead-letter messages")
    return dead_letter_messages(app)


def terminal(jobs: Iterable[Job]) -> bool:
    return all(job.state.terminal for job in jobs)
