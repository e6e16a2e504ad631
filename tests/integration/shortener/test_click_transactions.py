"""How many transactions count the clicks of one batch of messages. `docs/guides/batch-handlers.md` has the figures."""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from shortener.click import CLICK
from tests.integration.shortener.conftest import World
from tests.support.deployed_functions import Context
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.batch_handlers import joint_calls
from tidemill.application.job_types import JobTypes
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.entrypoints import work
from tidemill.sqs import messages
from tidemill.worker.lane_worker import Worker

FIREFOX = "Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:26.0) Gecko/20100101 Firefox/26.0"
_receipts = count(1)


@pytest.fixture
def calls(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """The calls of DynamoDB, by operation."""
    monkeypatch.setattr(joint_calls, "LONGEST_WAIT_FOR_CLAIMS_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(joint_calls, "LONGEST_WAIT_FOR_OUTCOMES_SECONDS", PATIENCE_SECONDS)
    counted: Counter[str] = Counter()

    def note(event_name: str, **_rest: Any) -> None:
        counted[event_name.rpartition(".")[2]] += 1

    world.dynamodb.meta.events.register("before-call", note)
    yield counted
    world.dynamodb.meta.events.unregister("before-call", note)


def _work(world: World, worker: Worker, calls: Counter[str], *, clicks: int) -> Counter[str]:
    """The calls with which a worker runs the jobs of so many clicks."""
    for _ in range(clicks):
        world.visit("spring", user_agent=FIREFOX)
    records = [
        {
            "messageId": f"message-{number}",
            "receiptHandle": f"receipt-{number}",
            "body": messages.encode(reference_to(job)),
            "attributes": {"ApproximateReceiveCount": "1"},
            "messageAttributes": {},
            "eventSource": "aws:sqs",
        }
        for job, number in zip((job for job in world.jobs() if job.state is State.QUEUED), _receipts, strict=False)
    ]
    before = calls.copy()
    assert worker.work({"Records": records}, Context(remaining=timedelta(minutes=15))) == {"batchItemFailures": []}
    return calls - before


@pytest.mark.parametrize(("clicks", "transactions"), [(100, 3), (10, 1), (1, 1)])
def test_few_transactions_count_the_clicks_of_a_batch(
    world: World, calls: Counter[str], clicks: int, transactions: int
) -> None:
    world.post_link({"url": "https://example.com/a", "code": "spring"})
    worker = work.worker()

    made = _work(world, worker, calls, clicks=clicks)

    assert made["TransactWriteItems"] == transactions
    # The claims. Each settle is in a transaction.
    assert made["UpdateItem"] == clicks
    assert {job.state for job in world.jobs() if job.type == CLICK} == {State.SUCCEEDED}
    stats = world.stats("spring").json()
    assert (stats["clicks"], stats["browsers"], len(world.clicks())) == (clicks, {"Firefox": clicks}, clicks)
    assert all(json.loads(job.result or "")["browser"] == "Firefox" for job in world.jobs())


def test_a_batch_takes_a_fifth_of_the_transactions_of_single_runs_at_most(world: World, calls: Counter[str]) -> None:
    world.post_link({"url": "https://example.com/a", "code": "spring"})
    worker = work.worker()
    context = worker.settings.context
    types = context.job_types
    alone = JobTypes({name: replace(types.get(name), batch=1) for name in types.names()})
    singly = replace(worker, settings=replace(worker.settings, context=replace(context, job_types=alone)))

    together = _work(world, worker, calls, clicks=100)["TransactWriteItems"]
    single = _work(world, singly, calls, clicks=100)["TransactWriteItems"]

    assert world.stats("spring").json()["clicks"] == 200
    assert (single, together) == (100, 3)
    assert single >= 5 * together
