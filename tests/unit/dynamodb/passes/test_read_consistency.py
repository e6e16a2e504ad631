"""Which reads are consistent: those on which a write or an answer rests. The others cost half."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.builders import NOW, RETENTION, TENANT, a_job
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.job_filter import ANY_JOB
from tidemill.application.passes.pass_state import first_pass
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.admission.strain_item import DynamoGovernor
from tidemill.dynamodb.batches.batch_pages import DynamoBatchPages
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.dispatch.owed_items import DynamoOwedWork
from tidemill.dynamodb.flows.flow_items import DynamoFlows
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.dynamodb.operations import canary_marks
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.dynamodb.passes import job_sample
from tidemill.dynamodb.passes.job_scan import DynamoJobScan
from tidemill.dynamodb.passes.pass_store import DynamoPasses
from tidemill.dynamodb.passes.table_scan import DynamoTableScan
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.dynamodb.restore.restored_table import DynamoRecoveryLog, RestoredPages


class Client:
    """An empty table. It notes for each read whether it is consistent."""

    def __init__(self) -> None:
        self.reads: list[bool] = []

    def get_item(self, **request: Any) -> Any:
        self.reads.append(request.get("ConsistentRead", False))
        return {}

    def batch_get_item(self, **request: Any) -> Any:
        self.reads += [asked.get("ConsistentRead", False) for asked in request["RequestItems"].values()]
        return {"Responses": {}, "UnprocessedKeys": {}}

    def scan(self, **request: Any) -> Any:
        self.reads.append(request.get("ConsistentRead", False))
        return {"Items": [], "ScannedCount": 0, "ConsumedCapacity": {"CapacityUnits": 0.5}}

    def get_paginator(self, name: str) -> Any:
        def pages(**request: Any) -> Iterator[Any]:
            yield getattr(self, name)(**request)

        return SimpleNamespace(paginate=pages)

    def transact_write_items(self, **_request: Any) -> None:
        """It takes each write."""


def store(client: Any) -> DynamoJobStore:
    return DynamoJobStore(client, table="jobs", retention=RETENTION)


def load(client: Any) -> None:
    payloads = DynamoPayloads(client, table="jobs", bucket=lambda: Bucket(client, "files"), new_token=lambda: "1")
    with pytest.raises(MalformedDocumentError, match="is missing"):
        payloads.load(a_job(payload=None, payload_at="item/1"))


JOB = a_job()
CONSISTENT: dict[str, Callable[[Any], object]] = {
    "a job": lambda client: store(client).get(TENANT, "a"),
    "jobs": lambda client: store(client).get_many([(TENANT, "a")]),
    "the name of a burst": lambda client: store(client).debounced_job_id(TENANT, "a"),
    "the order of a group": lambda client: store(client).advance(TENANT, "g", now=NOW),
    "the end of a group": lambda client: store(client).insert_if_absent(a_job(group="g")),
    "the members of a batch": lambda client: DynamoBatchPages(client, table="jobs").pages(JOB),
    "the cursors of a flow": lambda client: DynamoFlows(client, table="jobs").cursors(JOB, [0]),
    "the nodes that were added to a flow": lambda client: DynamoFlows(client, table="jobs").added(JOB, [0]),
    "a limit": lambda client: DynamoLimits(client, table="jobs").look(Line.for_limit("a")),
    "a breaker that decides": lambda client: DynamoBreakers(client, table="jobs").read("a", consistent=True),
    "the settings that act": lambda client: DynamoConfiguration(client, table="jobs").acting(),
    "the history of the settings": lambda client: list(DynamoConfiguration(client, table="jobs").history()),
    "owed work": lambda client: DynamoOwedWork(client, table="jobs").find(
        Work(kind=Kind.ADVANCE, tenant=TENANT, name="a")
    ),
    "a pass": lambda client: DynamoPasses(client, table="jobs", new_token=lambda: "1").read(),
    "a segment": lambda client: DynamoPasses(client, table="jobs", new_token=lambda: "1").segment(first_pass(NOW), 0),
    "a payload": load,
    "a recovery": lambda client: DynamoRecoveryLog(client, table="jobs").read(),
}
#: A write that follows is conditional on what was read, or a moment decides nothing.
EVENTUAL: dict[str, Callable[[Any], object]] = {
    "overdue jobs": lambda client: list(store(client).overdue(before=NOW)),
    "a segment of the table": lambda client: DynamoTableScan(client, table="jobs").page(
        0, of=1, after=None, overdue_since=NOW
    ),
    "a page of jobs": lambda client: DynamoJobScan(client, table="jobs").page(ANY_JOB, after=None),
    "a restored table": lambda client: RestoredPages(client, table="jobs").live(None),
    "a sample": lambda client: job_sample.read(client, table="jobs"),
    "canaries": lambda client: canary_marks.submitted(client, table="jobs"),
    "a breaker": lambda client: DynamoBreakers(client, table="jobs").read("a"),
    "the settings": lambda client: DynamoConfiguration(client, table="jobs").read(),
    "the strain": lambda client: DynamoGovernor(client, table="jobs").read(),
}


@pytest.mark.parametrize("name", CONSISTENT)
def test_a_read_on_which_a_write_rests_is_consistent(name: str) -> None:
    client = Client()

    CONSISTENT[name](client)

    assert client.reads
    assert all(client.reads)


@pytest.mark.parametrize("name", EVENTUAL)
def test_any_other_read_costs_half(name: str) -> None:
    client = Client()

    EVENTUAL[name](client)

    assert client.reads == [False]
