"""How long the items beside the jobs are kept: not so short that one is missed, and not for ever."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import A_BURST, LEASE, NOW, TENANT, a_job
from tidemill.application.ports import LimitSlot
from tidemill.aws.attribute_values import milliseconds, seconds
from tidemill.domain.batches.batches import LONGEST_OPEN, Page
from tidemill.domain.flows.flow_cursor import Cursor
from tidemill.domain.flows.flows import LONGEST_FLOW
from tidemill.domain.job import Job
from tidemill.domain.limits.limit_state import AHEAD, LimitState, Turn, run_name
from tidemill.domain.limits.limits import LONGEST_RATE_PERIOD, Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb import job_writes
from tidemill.dynamodb.batches import batch_pages
from tidemill.dynamodb.batches.batch_pages import DynamoBatchPages
from tidemill.dynamodb.corrections import undo_writes
from tidemill.dynamodb.debounce import debounce_writes
from tidemill.dynamodb.flows.flow_items import DynamoFlows
from tidemill.dynamodb.groups.groups import DynamoGroups
from tidemill.dynamodb.indexes import NOT_LISTED
from tidemill.dynamodb.limits import limit_item
from tidemill.names import TTL_ATTRIBUTE
from tidemill.system.ids import new_job_id

DAY = timedelta(days=1)


class Client:
    """A table with this item under each key that begins with `of`. It notes its writes."""

    def __init__(self, *, of: str = "none", item: Any = None) -> None:
        self._of = of
        self._item = item
        self.writes: list[Any] = []

    def get_item(self, **request: Any) -> Any:
        return {"Item": self._item} if request["Key"]["pk"]["S"].startswith(self._of) else {}

    def update_item(self, **request: Any) -> None:
        self.writes.append(request)

    put_item = update_item

    def transact_write_items(self, **request: Any) -> None:
        self.writes += [write for entry in request["TransactItems"] for write in entry.values()]


def written(act: Callable[[Any], object], **table: Any) -> list[Any]:
    client = Client(**table)
    act(client)
    return client.writes


def expires_at(write: Any) -> datetime | None:
    """Return the expiry of an item that is put, or of an update of one."""
    name = next((name for name, each in write.get("ExpressionAttributeNames", {}).items() if each == TTL_ATTRIBUTE), "")
    values = write.get("ExpressionAttributeValues", {})
    found = write.get("Item", {}).get(TTL_ATTRIBUTE)
    found = found or values.get(f":{name[1:]}") or values.get(f":new_{name[1:]}")
    return None if found is None else datetime.fromtimestamp(int(found["N"]), NOW.tzinfo)


BATCH = a_job(id=new_job_id())
MEMBER = a_job(id=new_job_id(), batch=BATCH.id)
ENDED = {State.SUCCEEDED: frozenset({MEMBER.id})}
FLOW = a_job(id=new_job_id())
DEBOUNCED: Job = a_job(burst=A_BURST)
LINE, BREAKER = Line.for_limit("a"), Line.for_breaker("a")
RATE = Rate(count=1, period=LONGEST_RATE_PERIOD)
LIMIT = Limit(concurrency=1, rate=RATE)
SLOT = LimitSlot(line=LINE, limit=LIMIT, token="t", until=NOW + LEASE, job=(TENANT, "a"))
READ = LimitState(limit=LIMIT, last_at=NOW)
HEAD = {"pk": {"S": '!head#["t","g"]'}, "sequence": {"N": "1"}, "version": {"S": "1"}}
#: While a member may still join or end: the batch is open, its last job waits for its time, and is retried.
WHILE_A_BATCH_LASTS = (LONGEST_OPEN + LONGEST_SPAN + 30 * DAY, 3 * 366 * DAY)
#: Longer than any rate counts.
WHILE_A_LIMIT_LIMITS = (LONGEST_RATE_PERIOD + AHEAD, 3 * DAY)
KEPT: dict[str, tuple[Callable[[], list[Any]], tuple[timedelta, timedelta]]] = {
    "a page of a batch that a member joins": (lambda: [batch_pages.join(MEMBER, BATCH)], WHILE_A_BATCH_LASTS),
    "the pages of a batch that is closed": (
        lambda: written(lambda client: DynamoBatchPages(client, table="jobs").close(BATCH, now=NOW)),
        WHILE_A_BATCH_LASTS,
    ),
    "a page with ended members": (
        lambda: written(
            lambda client: DynamoBatchPages(client, table="jobs").record(BATCH, Page(number=0), ENDED, now=NOW)
        ),
        WHILE_A_BATCH_LASTS,
    ),
    # Longer than the document of a batch, by default, which may be redriven as long.
    "a page of a batch that has ended": (
        lambda: written(
            lambda client: DynamoBatchPages(client, table="jobs").record(
                BATCH, Page(number=0), ENDED, now=NOW, last=True
            )
        ),
        (31 * DAY, 60 * DAY),
    ),
    "a page of an ended batch to which nothing was added": (
        lambda: written(
            lambda client: DynamoBatchPages(client, table="jobs").record(BATCH, Page(number=0), {}, now=NOW, last=True)
        ),
        (31 * DAY, 60 * DAY),
    ),
    # A month longer than the burst lasts, since its job may wait for a resume.
    "the name of a burst": (lambda: [debounce_writes.lead_to(DEBOUNCED, after=None)], (31 * DAY, 120 * DAY)),
    "the name of a later burst": (lambda: [debounce_writes.lead_to(DEBOUNCED, after="a")], (31 * DAY, 120 * DAY)),
    "a limit that a run enters": (lambda: [limit_item.enter(SLOT, READ, now=NOW)], WHILE_A_LIMIT_LIMITS),
    "a limit without room": (lambda: [limit_item.mark(SLOT, READ, now=NOW)], WHILE_A_LIMIT_LIMITS),
    "a limit that promises a time": (
        lambda: [limit_item.promise(SLOT, RATE, READ, NOW, now=NOW)],
        WHILE_A_LIMIT_LIMITS,
    ),
    "a limit that reserves a slot": (
        lambda: [limit_item.reserve(LINE, READ, [Turn(reservation="+a", due=NOW)], leaving=None, now=NOW)],
        WHILE_A_LIMIT_LIMITS,
    ),
    "the line of a breaker without jobs": (lambda: [limit_item.clear(BREAKER, READ)], WHILE_A_LIMIT_LIMITS),
    "the cursor of a flow": (
        lambda: written(lambda client: DynamoFlows(client, table="jobs").move(FLOW, 0, Cursor())),
        (LONGEST_FLOW + DAY, 2 * LONGEST_FLOW),
    ),
    "nodes that were added to a flow": (
        lambda: written(lambda client: DynamoFlows(client, table="jobs").add(FLOW, "[]", now=NOW))[1:],
        (LONGEST_FLOW + DAY, 2 * LONGEST_FLOW),
    ),
    "the order of a group without jobs": (
        lambda: written(
            lambda client: DynamoGroups(
                client, table="jobs", read=lambda _tenant, _id: None, indexes=NOT_LISTED
            ).advance("t", "g", now=NOW),
            of="!head#",
            item=HEAD,
        ),
        (DAY - timedelta(hours=1), DAY + timedelta(hours=1)),
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_an_item_is_kept_while_something_may_need_it_and_no_longer(name: str) -> None:
    write, (least, most) = KEPT[name]

    writes = write()

    (at,) = {expires_at(each) for each in writes}
    assert at is not None
    assert NOW + least <= at <= NOW + most
    assert not any(each.get("UpdateExpression", "").strip().endswith("ADD") for each in writes), "an empty clause"


#: What holds jobs back for as long as an operator likes.
STAYS: dict[str, Callable[[], Any]] = {
    "the line of a breaker with a job": lambda: limit_item.mark(replace(SLOT, line=BREAKER), READ, now=NOW),
    "the line of a breaker that releases jobs": lambda: limit_item.reserve(
        BREAKER, READ, [Turn(reservation="+a", due=NOW)], leaving=None, now=NOW
    ),
    "a limit that a run leaves": lambda: limit_item.leave(SLOT),
    "a limit whose slot is given back": lambda: limit_item.vacate(LINE, run_name("t")),
    "a limit without jobs": lambda: limit_item.clear(LINE, READ),
}


@pytest.mark.parametrize("name", STAYS)
def test_other_writes_leave_the_time_of_expiry_alone_or_take_it_away(name: str) -> None:
    assert expires_at(STAYS[name]()) is None


@pytest.mark.parametrize(
    ("own", "before", "kept"),
    [
        (None, None, 30 * DAY),
        (None, 10 * DAY, 30 * DAY),
        (None, 60 * DAY, 60 * DAY),
        (5 * DAY, 1 * DAY, 5 * DAY),
        (5 * DAY, 7 * DAY, 7 * DAY),
    ],
)
def test_a_success_that_is_superseded_is_kept_for_a_whole_time_from_then_on(
    own: timedelta | None, before: timedelta | None, kept: timedelta
) -> None:
    """Its document says how it is undone."""
    done = a_job(state=State.SUCCEEDED, due=None, retention=own, expires_at=before and NOW + before)

    marked = undo_writes.mark_superseded(done, a_job(created_at=NOW), retention=30 * DAY)

    assert expires_at(marked) == NOW.replace(microsecond=0) + kept + timedelta(seconds=1)


@pytest.mark.parametrize("state", [State.EXPIRED, State.CANCELLED])
def test_another_end_that_is_superseded_is_kept_as_long_as_before(state: State) -> None:
    ended = a_job(state=state, due=None, expires_at=NOW + DAY)

    assert undo_writes.mark_superseded(ended, a_job(created_at=NOW), retention=30 * DAY)["UpdateExpression"] == (
        "SET #superseded_by = :new_superseded_by"
    )


@pytest.mark.parametrize(
    ("changes", "state", "kept"),
    [
        ({}, State.SUCCEEDED, 30 * DAY),
        ({"retention": 2 * DAY}, State.SUCCEEDED, 2 * DAY),
        ({"retention": 2 * DAY}, State.DEAD, 2 * DAY),
        # Its key stays taken for longer.
        ({"retention": 2 * DAY, "unique_until": NOW + 3 * DAY}, State.SUCCEEDED, 3 * DAY),
        ({"retention": 2 * DAY, "unique_until": NOW + DAY}, State.SUCCEEDED, 2 * DAY),
        ({"group": "g"}, State.DEAD, 30 * DAY),
        ({"blocks": True}, State.DEAD, 30 * DAY),
        ({"group": "g", "blocks": True}, State.CANCELLED, 30 * DAY),
        # It blocks its group until an operator has decided.
        ({"group": "g", "blocks": True}, State.DEAD, None),
    ],
    ids=str,
)
def test_a_job_that_has_ended_is_kept_unless_it_blocks_its_group(
    changes: dict[str, Any], state: State, kept: timedelta | None
) -> None:
    ended = job_writes.ended(a_job(**changes), state, now=NOW, retention=30 * DAY)

    assert ended["finished_at"] == milliseconds(NOW)
    assert ended.get(TTL_ATTRIBUTE) == (None if kept is None else seconds(NOW + kept))
