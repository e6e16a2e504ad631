"""The transactions that insert jobs of groups, and jobs beside another one: positions, reads, and lost answers."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import NOW, RETENTION, TENANT, a_job, an_undo_of, with_changes
from tidemill.aws.attribute_values import seconds
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.groups.groups import DynamoGroups
from tidemill.dynamodb.indexes import NOT_LISTED
from tidemill.dynamodb.job_store import DynamoJobStore

DONE = a_job(state=State.SUCCEEDED, due=None, expires_at=NOW + RETENTION)


class Client:
    """A table with these documents. It refuses each transaction by `refusing`, the item of its first entry."""

    def __init__(self, *jobs: Job, refusing: Job | None = None) -> None:
        self._items = {f"{job.tenant}#{job.id}": encode(job) for job in jobs}
        self._refusing = refusing
        self.reads: list[str] = []

    def get_item(self, **request: Any) -> Any:
        name = request["Key"]["pk"]["S"]
        self.reads.append(name)
        return {"Item": self._items[name]} if name in self._items else {}

    def transact_write_items(self, **request: Any) -> None:
        if self._refusing is None:
            return
        refused: Any = {"Code": "ConditionalCheckFailed", "Item": encode(self._refusing)}
        reasons = [refused, *[{"Code": "None"} for _ in request["TransactItems"][1:]]]
        response: Any = {"Error": {"Code": "TransactionCanceledException", "Message": "no"}}
        raise ClientError(response | {"CancellationReasons": reasons}, "TransactWriteItems")


def store(client: Any) -> DynamoJobStore:
    return DynamoJobStore(client, table="jobs", retention=RETENTION)


def test_jobs_of_one_transaction_get_positions_one_after_the_other_in_their_groups() -> None:
    client: Any = Client()
    groups = DynamoGroups(client, table="jobs", read=lambda _tenant, _id: None, indexes=NOT_LISTED)
    jobs = [a_job(group=group) for group in ("a", "b", "a", None, "a", "b")]

    placed, entries = groups.enter(jobs)

    assert [(job.group.key, job.group.sequence, str(job.state)) for job in placed] == [
        ("a", 1, "queued"),
        ("b", 1, "queued"),
        ("a", 2, "waiting"),
        (None, None, "queued"),
        ("a", 3, "waiting"),
        ("b", 2, "waiting"),
    ]
    assert [job.id for job in placed] == [job.id for job in jobs]
    written = [write["Item"]["pk"]["S"] for entry in entries for write in entry.write.values()]
    assert sorted(written) == sorted(
        [
            *(f'!place#["{TENANT}","a",{number}]' for number in (2, 3)),
            f'!place#["{TENANT}","b",2]',
            *(f'!{kind}#["{TENANT}","{group}"]' for kind in ("head", "tail") for group in ("a", "b")),
        ]
    )
    assert len(client.reads) == 4, "tail and head of each group, once"


@pytest.mark.parametrize("tail", [True, False])
def test_a_group_whose_last_job_has_ended_is_idle_and_has_no_tail(tail: bool) -> None:
    """A tail that stayed would give the next job a position from which nothing moves it on."""

    class Ended(Client):
        def get_item(self, **request: Any) -> Any:
            item = {"sequence": {"N": "3"}, "version": {"S": "1"}, **request["Key"]}
            if request["Key"]["pk"]["S"].startswith("!tail#"):
                return {"Item": item} if tail else {}
            return {"Item": {**item, "job": {"S": "a"}}} if request["Key"]["pk"]["S"].startswith("!head#") else {}

        def transact_write_items(self, **request: Any) -> None:
            self.written = request["TransactItems"]

    client: Any = Ended()
    groups = DynamoGroups(client, table="jobs", read=lambda _tenant, _id: None, indexes=NOT_LISTED)

    assert groups.advance(TENANT, "g", now=NOW) is None

    put, *deleted = client.written
    assert put["Put"]["Item"]["expires_at"] == seconds(NOW + timedelta(days=1))
    assert "job" not in put["Put"]["Item"]
    assert [each["Delete"]["Key"]["pk"]["S"] for each in deleted] == [f'!tail#["{TENANT}","g"]'] * tail


def test_a_head_that_names_no_job_costs_no_read_of_one() -> None:
    """An advance that passed cancelled jobs has left it."""
    reads: list[str] = []

    class Passed(Client):
        def get_item(self, **request: Any) -> Any:
            item = {"sequence": {"N": "3"}, "version": {"S": "1"}, **request["Key"]}
            return {"Item": item} if request["Key"]["pk"]["S"].startswith("!head#") else {}

    client: Any = Passed()
    groups = DynamoGroups(client, table="jobs", read=lambda _tenant, job: reads.append(job), indexes=NOT_LISTED)

    assert groups.advance(TENANT, "g", now=NOW) is None
    assert reads == []


def test_a_transaction_that_is_denied_does_not_count_as_a_fault_of_a_handler() -> None:
    class Denied(Client):
        def transact_write_items(self, **_request: Any) -> None:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "TransactWriteItems")

    client: Any = Denied()

    with pytest.raises(ClientError, match="AccessDenied"):
        store(client).insert_if_absent(a_job(group="g"))


def test_an_undo_costs_no_read() -> None:
    client = Client()
    job, entry = an_undo_of(DONE)

    assert store(client).undo(DONE, job, entry) == job
    assert client.reads == []


def test_an_undo_whose_answer_was_lost_gives_its_job_as_it_is_now() -> None:
    """The job may have ended meanwhile."""
    job, entry = an_undo_of(DONE)
    now = replace(job, state=State.SUCCEEDED, due=None)
    client = Client(now, refusing=with_changes(DONE, undone=entry))

    assert store(client).undo(DONE, job, entry) == now
    assert client.reads == [f"{job.tenant}#{job.id}"]


def test_an_undo_whose_job_is_gone_is_refused() -> None:
    job, entry = an_undo_of(DONE)
    marked = with_changes(DONE, undone=entry)

    with pytest.raises(WriteRefusedError) as refused:
        store(Client(refusing=marked)).undo(DONE, job, entry)
    assert refused.value.current
    assert refused.value.current.correction.undone == entry
