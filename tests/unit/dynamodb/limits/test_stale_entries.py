"""The index lags behind the documents, and a scan has no order: which jobs a read gives, and what it reads for that."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.builders import A_WAIT, NOW, SECOND, TENANT, a_job, with_changes
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.job_filter import JobFilter
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Wait
from tidemill.dynamodb.dispatch.owed_items import owed_key, owed_partitions
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.job_reader import JobReader
from tidemill.dynamodb.limits.limits import DynamoLimits

PARKED = a_job(state=State.PARKED, wait=A_WAIT)
DEAD = a_job(state=State.DEAD, due=None, finished_at=NOW)


class Client:
    """An index whose first partition has an entry for each of these jobs, in pages of two items for a scan."""

    def __init__(self, *jobs: Job) -> None:
        self._items = [encode(job) for job in jobs]
        self.partitions: list[str] = []
        self.read: list[str] = []

    def query(self, **request: Any) -> Any:
        self.partitions.append(request["ExpressionAttributeValues"][":partition"]["S"])
        return {"Items": [{"pk": item["pk"]} for item in self._items] if len(set(self.partitions)) == 1 else []}

    def batch_get_item(self, **request: Any) -> Any:
        keys = [key["pk"]["S"] for key in request["RequestItems"]["jobs"]["Keys"]]
        self.read += keys
        return {
            "Responses": {"jobs": [item for item in self._items if item["pk"]["S"] in keys]},
            "UnprocessedKeys": {},
        }

    def get_paginator(self, _name: str) -> "Client":
        return self

    def paginate(self, **_request: Any) -> Iterator[Any]:
        for start in range(0, len(self._items), 2):
            more: dict[str, Any] = {"LastEvaluatedKey": {}} if start + 2 < len(self._items) else {}
            units = {"ConsumedCapacity": {"CapacityUnits": float(start + 1)}}
            yield {"Items": self._items[start : start + 2], **more, **units}


def reader(client: Any) -> JobReader:
    return JobReader(client, table="jobs")


@pytest.mark.parametrize(
    "changes",
    [
        {"state": State.QUEUED},
        {"wait": None},
        {"wait": Wait(cause=Cause.LIMIT, key="another", since=NOW)},
        {"wait": replace(A_WAIT, cause=Cause.BREAKER)},
    ],
    ids=["released", "without a wait", "in another line", "before a breaker"],
)
def test_a_job_that_has_left_its_line_is_not_in_it(changes: dict[str, Any]) -> None:
    left = with_changes(PARKED, id="left", **changes)

    assert reader(Client(PARKED, left)).parked(A_WAIT.line, most=5) == [PARKED]


def test_a_search_reads_only_the_documents_whose_keys_fit() -> None:
    client = Client(DEAD, a_job(state=State.DEAD, due=None, finished_at=NOW))

    assert list(reader(client).dead(JobFilter(ids=[DEAD.id]))) == [DEAD]
    assert client.read == [f"{TENANT}#{DEAD.id}"]


def test_a_scan_pauses_for_what_each_page_has_cost_before_it_reads_the_next() -> None:
    spent: list[float] = []
    jobs = [a_job() for _ in range(5)]

    assert list(reader(Client(*jobs)).overdue(before=NOW + SECOND, spend=spent.append)) == jobs
    assert spent == [1.0, 3.0]


def test_the_lines_of_limits_are_in_four_partitions() -> None:
    """A version that runs beside this one uses them, too."""
    client: Any = Client()

    assert list(DynamoLimits(client, table="jobs").lines()) == []
    assert client.partitions == [f"lines#{shard}" for shard in range(4)]


def test_owed_work_is_in_four_partitions_under_keys_that_say_what_it_is() -> None:
    assert owed_partitions() == [f"owed#{shard}" for shard in range(4)]
    work = Work(kind=Kind.ADVANCE, tenant="t", name="g")
    assert owed_key(work) == {"pk": {"S": '!owed#["advance","t","g"]'}}
    assert owed_key(replace(work, payload_at="item/1")) == {"pk": {"S": '!owed#["advance","t","g","item/1"]'}}
