"""While DynamoDB does not respond, each read and write says so, and nothing else."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from tests.support.builders import LEASE, NOW, RETENTION, TENANT, a_job
from tidemill.application.job_filter import ANY_JOB
from tidemill.application.owed import Kind, Work
from tidemill.application.pass_state import first_pass
from tidemill.application.ports import WHOLE, LimitSlot
from tidemill.application.recover import Recovery
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.limits import Limit
from tidemill.domain.states import State
from tidemill.domain.waiting import Line
from tidemill.dynamodb.attention_counts import AttentionCounts
from tidemill.dynamodb.breaker_item import DynamoBreakers
from tidemill.dynamodb.configuration_item import DynamoConfiguration
from tidemill.dynamodb.indexes import NOT_LISTED
from tidemill.dynamodb.job_scan import DynamoJobScan
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits import DynamoLimits
from tidemill.dynamodb.owed_items import DynamoOwedWork
from tidemill.dynamodb.passes import DynamoPasses
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.dynamodb.restored_table import DynamoRecoveryLog, RestoredPages
from tidemill.dynamodb.strain_item import DynamoGovernor


class Out:
    """A client whose calls get no answer."""

    def get_paginator(self, _name: str) -> Any:
        def pages(**_request: Any) -> Iterator[Any]:
            self.call()
            yield

        return SimpleNamespace(paginate=pages)

    def call(self, **_request: Any) -> None:
        raise ConnectTimeoutError(endpoint_url="https://dynamodb.invalid")

    def __getattr__(self, _name: str) -> Callable[..., Any]:
        return self.call


CLIENT: Any = Out()
STORE = DynamoJobStore(CLIENT, table="jobs", retention=RETENTION, indexes=NOT_LISTED)
LIMITS = DynamoLimits(CLIENT, table="jobs")
PAYLOADS = DynamoPayloads(CLIENT, table="jobs", bucket=lambda: Bucket(CLIENT, "files"), new_token=lambda: "1")
LOG = DynamoRecoveryLog(CLIENT, table="jobs")
PAGES = RestoredPages(CLIENT, table="jobs")
OWED = DynamoOwedWork(CLIENT, table="jobs")
PASSES = DynamoPasses(CLIENT, table="jobs", new_token=lambda: "1")
SETTINGS = DynamoConfiguration(CLIENT, table="jobs")
SCAN = DynamoJobScan(CLIENT, table="jobs")
COUNTS = AttentionCounts(CLIENT, table="jobs")
WORK = Work(kind=Kind.ADVANCE, tenant=TENANT, name="a")
LINE = Line.for_limit("a")
SLOT = LimitSlot(line=LINE, limit=Limit(concurrency=1), token="t", until=NOW + LEASE, job=(TENANT, "a"))
LARGE = a_job(payload="x" * 1_000)
HUGE = a_job(payload="x" * 1_000_000)
CALLS: dict[str, Callable[[], object]] = {
    "get": lambda: STORE.get(TENANT, "a"),
    "get many": lambda: STORE.get_many([(TENANT, "a")]),
    "scheduled": lambda: list(STORE.scheduled(before=NOW, part=WHOLE)),
    "dead": lambda: list(STORE.dead()),
    "parked": lambda: STORE.parked(LINE, most=1),
    "overdue": lambda: list(STORE.overdue(before=NOW)),
    "job of burst": lambda: STORE.job_of_burst(TENANT, "a"),
    "advance": lambda: STORE.advance(TENANT, "a", now=NOW),
    "insert": lambda: STORE.insert_if_absent(a_job()),
    "insert in a group": lambda: STORE.insert_if_absent(a_job(group="a")),
    "look": lambda: LIMITS.look(LINE),
    "enter": lambda: LIMITS.acquire(SLOT, now=NOW),
    "leave": lambda: LIMITS.release(SLOT),
    "lines": lambda: list(LIMITS.lines()),
    "breaker": lambda: DynamoBreakers(CLIENT, table="jobs").read("a"),
    "put away": lambda: PAYLOADS.put_away(LARGE),
    "put into a file": lambda: PAYLOADS.put_away(HUGE),
    "load": lambda: PAYLOADS.load(a_job(payload=None, payload_at="item/1")),
    "load a file": lambda: PAYLOADS.load(a_job(payload=None, payload_at="file/1")),
    "delete": lambda: PAYLOADS.delete(TENANT, "a", "item/1"),
    "delete a file": lambda: PAYLOADS.delete(TENANT, "a", "file/1"),
    "read the log": LOG.read,
    "write the log": lambda: LOG.write(Recovery(epoch=1, table="jobs", began_at=NOW, replaces="old"), seen=None),
    "live": lambda: PAGES.live(None),
    "accepted since": lambda: PAGES.accepted_since(NOW, None),
    "owe": lambda: OWED.owe(WORK, now=NOW, error="busy"),
    "pending": lambda: list(OWED.pending(before=NOW)),
    "find": lambda: OWED.find(WORK),
    "pass": lambda: PASSES.write(first_pass(NOW)),
    "read a pass": PASSES.read,
    "read a segment": lambda: PASSES.segment(first_pass(NOW), 0),
    "configuration": SETTINGS.read,
    "history": lambda: list(SETTINGS.history()),
    "strain": lambda: DynamoGovernor(CLIENT, table="jobs").read(),
    "page": lambda: SCAN.page(ANY_JOB, after=None),
    "count": lambda: COUNTS.jobs(State.DEAD),
    "newest": lambda: COUNTS.newest(State.DEAD, most=1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_an_answer_is_an_outage_of_the_store(name: str) -> None:
    with pytest.raises(StoreUnavailableError):
        CALLS[name]()
