"""The jobs of a batch and those of an event, listed over HTTP and from Python."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.support.api_gateway import request, sign_cursors
from tests.support.builders import TENANT, a_job
from tests.support.deployed_functions import Mill, forget
from tests.support.http_events import ROLE, Answer
from tidemill import composition
from tidemill.application.submission.job_ids import follow_up_id
from tidemill.client import Batch, Tidemill
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb import listing
from tidemill.dynamodb.batches import listed_members
from tidemill.dynamodb.batches.batch_pages import DynamoBatchPages
from tidemill.dynamodb.batches.listed_members import MemberListing
from tidemill.dynamodb.listing import Wanted
from tidemill.names import BATCH_PACKAGE, EVENT_TYPE, Env
from tidemill.system import clock

ANOTHER = {**ROLE, "userId": "AROANOTHER:a-session"}


@pytest.fixture(autouse=True)
def _functions(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{BATCH_PACKAGE}")
    sign_cursors(monkeypatch)
    forget()


def a_client(mill: Mill) -> Tidemill:
    return Tidemill.at(mill.table.name, tenant=TENANT, job_packages=["tests.support.jobs"], client=mill.table.client)


def a_batch(mill: Mill) -> str:
    return a_client(mill).open_batch(Batch()).job.id


def an_event(*consumers: str) -> tuple[Job, list[str]]:
    """The job of an event that has succeeded, and the ids of its consumers' jobs."""
    result = json.dumps({"consumers": consumers})
    event = composition.parts().store.insert_if_absent(a_job(type=EVENT_TYPE, result=result, created_at=clock.now()))
    jobs = [
        a_job(id=follow_up_id(event, index), type=consumer, parent=event.id, created_at=clock.now())
        for index, consumer in enumerate(consumers)
    ]
    return event, [composition.parts().store.insert_if_absent(job).id for job in jobs]


def listed(query: Mapping[str, str], *, iam: Mapping[str, Any] = ROLE) -> Answer:
    return request("GET", "/jobs", query=query, iam=iam)


def ids(answer: Answer) -> list[str]:
    assert answer.status == 200, answer
    return [job["id"] for job in answer.body["jobs"]]


def all_pages(query: dict[str, str]) -> list[list[str]]:
    found = [listed(query)]
    while cursor := found[-1].body["cursor"]:
        found.append(listed(query | {"cursor": cursor}))
    return [ids(each) for each in found]


def test_the_jobs_of_a_batch_are_listed_and_no_others(mill: Mill) -> None:
    batch, other = a_batch(mill), a_batch(mill)
    jobs = [mill.accepted(batch=batch) for _ in range(3)]
    mill.accepted(batch=other)
    mill.accepted()

    assert ids(listed({"batch": batch})) == sorted(jobs, reverse=True)
    assert listed({"batch": batch}).body["jobs"][0]["batch"] == batch
    assert ids(listed({"batch": a_batch(mill)})) == []


@pytest.mark.parametrize("filters", [{}, {"type": "test.scripted"}])
def test_cursors_lead_through_all_jobs_of_a_batch_once(mill: Mill, filters: dict[str, str]) -> None:
    batch = a_batch(mill)
    jobs = sorted((mill.accepted(batch=batch) for _ in range(5)), reverse=True)

    assert all_pages({"batch": batch, "limit": "2"} | filters) == [jobs[:2], jobs[2:4], jobs[4:]]


def test_a_page_reads_a_bounded_number_of_documents(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_members, "MOST_READ", 2)
    monkeypatch.setattr(listed_members, "_BATCH", 1)
    batch = a_batch(mill)
    jobs = sorted((mill.accepted(batch=batch) for _ in range(4)), reverse=True)
    other = mill.accepted(batch=batch, job_type="test.noop")

    assert [job for page in all_pages({"batch": batch, "type": "test.scripted"}) for job in page] == jobs
    assert all_pages({"batch": batch, "type": "test.noop"}).count([other]) == 1
    assert listing.MOST_READ == 500


def test_a_document_of_a_batch_that_cannot_be_read_is_named_among_the_others(mill: Mill) -> None:
    batch = a_batch(mill)
    whole, broken = mill.accepted(batch=batch), mill.accepted(batch=batch)
    mill.table.put(mill.job(broken), schema={"N": "99"})
    named: list[tuple[str, str, str]] = []

    body = listed({"batch": batch}).body
    found = MemberListing(
        DynamoBatchPages(mill.table.client, table=mill.table.name), read=composition.parts().store.get_many
    )
    parent = mill.job(batch)
    others = found.all(
        parent,
        Wanted(tenant=TENANT, since=parent.created_at),
        now=clock.now(),
        unreadable=lambda *each: named.append((*each[:2], str(each[2]))),
    )

    assert [job["id"] for job in body["jobs"]] == [job.id for job in others] == [whole]
    assert [each["id"] for each in body["unreadable"]] == [broken]
    assert "schema 99" in body["unreadable"][0]["error"]
    assert named == [(parent.tenant, broken, body["unreadable"][0]["error"])]


def test_the_filters_combine_with_the_batch(mill: Mill) -> None:
    batch = a_batch(mill)
    done = mill.accepted(batch=batch)
    mill.run()
    # A look has noted the end.
    document = mill.job(batch)
    composition.parts().batch_members.record(document, composition.parts().batch_members.look(document), last=False)
    mill.late += timedelta(minutes=5)
    queued = mill.accepted(batch=batch, tags=["a"])
    late = mill.get(queued).body["created_at"]

    assert ids(listed({"batch": batch, "state": "succeeded"})) == [done]
    assert ids(listed({"batch": batch, "state": "queued"})) == ids(listed({"batch": batch, "tag": "a"})) == [queued]
    assert ids(listed({"batch": batch, "state": "dead"})) == []
    assert ids(listed({"batch": batch, "since": late})) == [queued]
    assert ids(listed({"batch": batch, "until": late})) == [done]


def test_the_documents_of_ended_members_are_not_read_for_another_state(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = a_batch(mill)
    mill.accepted(batch=batch)
    mill.run()
    document = mill.job(batch)
    composition.parts().batch_members.record(document, composition.parts().batch_members.look(document), last=False)

    mill.calls.clear()
    assert ids(listed({"batch": batch, "state": "dead"})) == []
    assert mill.calls["dynamodb.BatchGetItem"] == 1, "the pages alone"


def test_a_cursor_is_valid_for_its_batch_only(mill: Mill) -> None:
    batch, other = a_batch(mill), a_batch(mill)
    for _ in range(2):
        mill.accepted(batch=batch)
    cursor = listed({"batch": batch, "limit": "1"}).body["cursor"]
    for query in ({"batch": other}, {"event": batch}, {}):
        answer = listed(query | {"cursor": cursor})
        assert (answer.status, answer.body["errors"][0]["pointer"]) == (422, "#/cursor")


def test_a_job_that_was_submitted_after_the_first_page_shifts_no_other_page(mill: Mill) -> None:
    batch = a_batch(mill)
    jobs = sorted((mill.accepted(batch=batch) for _ in range(3)), reverse=True)
    cursor = listed({"batch": batch, "limit": "1"}).body["cursor"]
    mill.late += timedelta(minutes=5)
    mill.accepted(batch=batch)
    assert ids(listed({"batch": batch, "cursor": cursor})) == jobs[1:]


def test_what_the_caller_does_not_own_is_not_there(mill: Mill) -> None:
    batch, job = a_batch(mill), mill.accepted()
    event, _ = an_event()
    own = listed({"batch": "no-batch"})
    assert (own.status, own.body["type"]) == (404, "urn:tidemill:problem:no-such-batch")
    for query, iam in (({"batch": batch}, ANOTHER), ({"batch": job}, ROLE), ({"batch": event.id}, ROLE)):
        answer = listed(query, iam=iam)
        assert (answer.status, answer.body["detail"]) == (404, own.body["detail"])
    for query, iam in (({"event": event.id}, ANOTHER), ({"event": batch}, ROLE), ({"event": "none"}, ROLE)):
        answer = listed(query, iam=iam)
        assert (answer.status, answer.body["type"]) == (404, "urn:tidemill:problem:no-such-event")


def test_a_batch_and_an_event_together_are_refused(mill: Mill) -> None:
    answer = listed({"batch": a_batch(mill), "event": "e"})
    assert (answer.status, [each["pointer"] for each in answer.body["errors"]]) == (422, ["#/batch", "#/event"])
    assert listed({"batch": ""}).status == 422


def test_the_jobs_of_an_event_are_listed(mill: Mill) -> None:
    event, jobs = an_event("test.noop", "test.scripted")
    mill.accepted()
    assert ids(listed({"event": event.id})) == sorted(jobs, reverse=True)
    assert ids(listed({"event": event.id, "type": "test.noop"})) == jobs[:1]
    assert all_pages({"event": event.id, "limit": "1"}) == [[each] for each in sorted(jobs, reverse=True)]
    waiting = composition.parts().store.insert_if_absent(a_job(type=EVENT_TYPE))
    assert ids(listed({"event": waiting.id})) == []


def test_python_lists_the_jobs_of_a_batch_and_of_an_event(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_members, "_BATCH", 2)
    client, batch = a_client(mill), a_batch(mill)
    done = mill.accepted(batch=batch)
    mill.run()
    jobs = [done, *(mill.accepted(batch=batch) for _ in range(4))]
    event, consumed = an_event("test.noop")

    found = client.jobs_of(batch)
    assert found
    assert [job.id for job in found] == sorted(jobs, reverse=True)
    assert [job.id for job in client.jobs_of(batch, state=State.SUCCEEDED) or ()] == [done]
    assert [job.id for job in client.jobs_of(event.id) or ()] == consumed
    assert client.jobs_of(done) is client.jobs_of("no-job") is None
    other = Tidemill.at(mill.table.name, tenant="a:other", job_packages=[], client=mill.table.client)
    assert other.jobs_of(batch) is None
