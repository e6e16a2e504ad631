"""The figure of `make figures FIGURE=wake`: what one job costs wake, and that 100,000 jobs fit into one invocation."""

import time
from collections.abc import Callable
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from demo.figures import wake as figure
from demo.figures.wake import ScheduledJobs, answered_by, measure
from stacks.stages import STAGES
from tests.support.builders import a_job
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.waiting.wake import AT_ONCE, WAKE_RESERVE
from tidemill.domain.states import State
from tidemill.dynamodb.operations import operator_writes
from tidemill.names import LARGEST_INDEX_SHARDS, WAKE_INTERVAL_SECONDS

JOBS = 1_000
#: Keys in one page of the index, and documents in one batch.
PAGE = 100


def test_a_wake_costs_one_write_and_a_hundredth_of_two_reads() -> None:
    calls = measure(JOBS).calls

    assert calls["UpdateItem"] == JOBS
    assert calls["BatchGetItem"] == JOBS // PAGE
    assert calls["Query"] <= JOBS // PAGE + LARGEST_INDEX_SHARDS


def test_a_call_writes_over_all_connections_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    together = Barrier(AT_ONCE, timeout=PATIENCE_SECONDS)
    answer: Callable[..., Any] = ScheduledJobs._UpdateItem

    def together_with_others(self: ScheduledJobs, request: Any) -> Any:
        together.wait()
        return answer(self, request)

    monkeypatch.setattr(ScheduledJobs, "_UpdateItem", together_with_others)

    assert measure(10 * AT_ONCE).jobs == 10 * AT_ONCE


def test_prod_wakes_100_000_jobs_of_one_minute_in_one_invocation() -> None:
    without_processor = replace(measure(JOBS), cpu_seconds=0.0)

    seconds = figure.JOBS / min(without_processor.rates(STAGES["prod"]()).values())

    assert seconds < WAKE_INTERVAL_SECONDS - WAKE_RESERVE.total_seconds()


def test_a_wake_takes_little_more_processor_time_than_its_write() -> None:
    """A ratio, since both run on this machine: the reads, the threads and the decoding may cost three writes more.

    The least of several measures counts: other work on the machine makes a measure larger, and never smaller.
    """
    pairs = [(measure(JOBS).cpu_per_job, processor_time_of_a_bare_write()) for _ in range(3)]

    assert min(wake for wake, _ in pairs) < 4 * min(bare for _, bare in pairs)


def processor_time_of_a_bare_write() -> float:
    """Seconds, as the mean of `JOBS` writes."""
    job = a_job(id="job-0", state=State.SCHEDULED)
    table = ScheduledJobs(1)
    with answered_by(table) as client:
        request = operator_writes.wake(job, now=job.created_at) | {
            "TableName": "jobs",
            "Key": {"pk": {"S": next(iter(table._documents))}},
        }
        client.update_item(**request)
        began = time.process_time() - table.cpu_seconds
        for _ in range(JOBS):
            client.update_item(**request)
        return (time.process_time() - table.cpu_seconds - began) / JOBS
