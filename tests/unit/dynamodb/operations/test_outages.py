"""While DynamoDB does not respond, each read and write says so, and nothing else."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError

from tests.support.builders import LEASE, NOW, RETENTION, TENANT, a_job
from tidemill.application.dispatch.owed import Kind, Owed, Work
from tidemill.application.job_filter import ANY_JOB
from tidemill.application.operations.audit import AuditEntry, Outcome
from tidemill.application.passes.pass_state import first_pass
from tidemill.application.ports import WHOLE, LimitSlot, PayloadItem
from tidemill.application.restore.recover import Recovery
from tidemill.domain.admission.governor import Governed, Starts
from tidemill.domain.admission.quotas import Period
from tidemill.domain.batches.batches import Page
from tidemill.domain.breakers.breaker import Breaker, BreakerPolicy, BreakerState, Callers
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.flows.flow_cursor import Cursor
from tidemill.domain.limits.limits import Limit
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, Change
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.admission.quota_items import DynamoSubmissionCounts
from tidemill.dynamodb.admission.strain_item import DynamoGovernor
from tidemill.dynamodb.batches.batch_pages import DynamoBatchPages
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.dispatch.owed_items import DynamoOwedWork
from tidemill.dynamodb.flows.flow_items import DynamoFlows
from tidemill.dynamodb.indexes import NOT_LISTED
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.dynamodb.listing_entries import ListingEntries
from tidemill.dynamodb.operations import canary_marks
from tidemill.dynamodb.operations.archive_files import BucketArchive
from tidemill.dynamodb.operations.attention_counts import AttentionCounts
from tidemill.dynamodb.operations.audit_items import DynamoAuditLog
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.dynamodb.passes import job_sample
from tidemill.dynamodb.passes.job_scan import DynamoJobScan
from tidemill.dynamodb.passes.pass_store import DynamoPasses
from tidemill.dynamodb.passes.table_scan import DynamoTableScan
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.dynamodb.restore.restored_table import DynamoRecoveryLog, RestoredPages


class Out:
    """A client whose calls get no answer, but for those with one in `answers`."""

    def __init__(self, **answers: Any) -> None:
        self._answers = answers

    def get_paginator(self, name: str) -> Any:
        def pages(**_request: Any) -> Iterator[Any]:
            yield getattr(self, name)()

        return SimpleNamespace(paginate=pages)

    def call(self, **_request: Any) -> None:
        raise ConnectTimeoutError(endpoint_url="https://dynamodb.invalid")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return (lambda **_request: self._answers[name]) if name in self._answers else self.call


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
AUDIT = DynamoAuditLog(CLIENT, table="jobs", retention=RETENTION)
PAGES_OF_BATCHES = DynamoBatchPages(CLIENT, table="jobs")
BREAKERS = DynamoBreakers(CLIENT, table="jobs")
FLOWS = DynamoFlows(CLIENT, table="jobs")
GOVERNOR = DynamoGovernor(CLIENT, table="jobs")
TABLE_SCAN = DynamoTableScan(CLIENT, table="jobs")
COUNTED = DynamoSubmissionCounts(CLIENT, table="jobs", new_token=lambda: "1")
POLICY = BreakerPolicy(name="a")
NO_MEMBERS = Page(number=0)
ENTRY = AuditEntry(id="a", command="redrive", began_at=NOW, by="ada", reason="", options={})
FOUND: Any = Out(query={"Items": [{"pk": {"S": "!audit#a"}}]})
CHANGED: Any = Out(get_item={"Item": {"version": {"N": "1"}, "document": {"S": "{}"}}})
CHANGE = Change(version=1, name="flags.a", at=NOW, by="ada", reason="", value=1)
PAYLOAD_ITEM = PayloadItem(tenant=TENANT, job_id="a", location="item/1", stored_at=NOW, item_key="!payload#a")
RUNNING = a_job(state=State.RUNNING)
WORK = Work(kind=Kind.ADVANCE, tenant=TENANT, name="a")
OWED_WORK = Owed(work=WORK, since=NOW, next_try=NOW, tries=0, error="busy", resent=False, version="1", failures=1)
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
    "job of burst": lambda: STORE.debounced_job_id(TENANT, "a"),
    "advance": lambda: STORE.advance(TENANT, "a", now=NOW),
    "insert": lambda: STORE.insert_if_absent(a_job()),
    "insert in a group": lambda: STORE.insert_if_absent(a_job(group="a")),
    "look": lambda: LIMITS.look(LINE),
    "enter": lambda: LIMITS.acquire(SLOT, now=NOW),
    "leave": lambda: LIMITS.release(SLOT),
    "lines": lambda: list(LIMITS.lines()),
    "vacate": lambda: LIMITS.vacate(LINE, "a"),
    "breaker": lambda: BREAKERS.read("a"),
    "count a failure": lambda: BREAKERS.fail(
        Breaker(name="a"), POLICY, calls=1, call="1", by=Callers(), error="down", now=NOW
    ),
    "open a breaker": lambda: BREAKERS.move(Breaker(name="a"), Breaker(name="a", state=BreakerState.OPEN)),
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
    "put off": lambda: OWED.put_off(OWED_WORK, until=NOW, error=None),
    "done": lambda: OWED.done(OWED_WORK),
    "pass": lambda: PASSES.write(first_pass(NOW)),
    "read a pass": PASSES.read,
    "read a segment": lambda: PASSES.segment(first_pass(NOW), 0),
    "configuration": SETTINGS.read,
    "history": lambda: list(SETTINGS.history()),
    "history, whose changes get no answer": lambda: list(DynamoConfiguration(CHANGED, table="jobs").history()),
    "change a setting": lambda: SETTINGS.write(NOTHING_SET, CHANGE),
    "strain": GOVERNOR.read,
    "count starts": lambda: GOVERNOR.add(Starts(total=1), now=NOW),
    "change the level of strain": lambda: GOVERNOR.move(Governed(), 1, now=NOW),
    "begin a minute": lambda: GOVERNOR.begin_minute(Governed(), now=NOW),
    "count submissions": lambda: COUNTED.add(TENANT, Period(begins=NOW, ends=NOW + LEASE), 1),
    "page": lambda: SCAN.page(ANY_JOB, after=None),
    "count": lambda: COUNTS.jobs(State.DEAD),
    "newest": lambda: COUNTS.newest(State.DEAD, most=1),
    "begin an audited command": lambda: AUDIT.begin(ENTRY),
    "end an audited command": lambda: AUDIT.end(ENTRY, at=NOW, outcome=Outcome.DONE, counts={}),
    "audit": lambda: list(AUDIT.entries()),
    "audit, whose items get no answer": lambda: list(
        DynamoAuditLog(FOUND, table="jobs", retention=RETENTION).entries()
    ),
    "batch": lambda: PAGES_OF_BATCHES.pages(a_job()),
    "close a batch": lambda: PAGES_OF_BATCHES.close(a_job(), now=NOW),
    "note ends of members": lambda: PAGES_OF_BATCHES.record(a_job(), NO_MEMBERS, {}, now=NOW),
    "cursors": lambda: FLOWS.cursors(RUNNING, [0]),
    "move a cursor": lambda: FLOWS.move(RUNNING, 0, Cursor()),
    "ask for a look": lambda: FLOWS.look(RUNNING, now=NOW),
    "nodes that were added": lambda: FLOWS.added(RUNNING, [0]),
    "add nodes": lambda: FLOWS.add(RUNNING, "[]", now=NOW),
    "sample": lambda: job_sample.read(CLIENT, table="jobs"),
    "canaries": lambda: canary_marks.submitted(CLIENT, table="jobs"),
    "segment of the table": lambda: TABLE_SCAN.page(0, of=1, after=None, overdue_since=NOW),
    "discard": lambda: TABLE_SCAN.discard(PAYLOAD_ITEM),
    "listing": lambda: list(ListingEntries(client=CLIENT, table="jobs").between(NOW, NOW, tenant=TENANT)),
    "archive": lambda: BucketArchive(CLIENT, bucket="archive").write(a_job()),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_an_answer_is_an_outage_of_the_store(name: str) -> None:
    with pytest.raises(StoreUnavailableError):
        CALLS[name]()
