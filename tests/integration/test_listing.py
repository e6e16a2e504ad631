"""`GET /jobs` through its handler: pages, filters, cursors and refusals."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.api_gateway import Secrets, request, sign_cursors
from tests.support.builders import RETENTION, SECOND
from tests.support.deployed_functions import Mill, forget
from tests.support.http_events import ROLE, Answer
from tidemill.aws.secret_keys import LONGEST_USE, SHORTEST_USE
from tidemill.http.list_query import DEFAULT_PAGE
from tidemill.names import Env

ANOTHER = {**ROLE, "userId": "AROANOTHER:a-session"}


@pytest.fixture(autouse=True)
def secrets(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Secrets:
    return sign_cursors(monkeypatch)


def listed(query: Mapping[str, str] | str = "", *, iam: Mapping[str, Any] = ROLE) -> Answer:
    return request("GET", "/jobs", query=query, iam=iam)


def ids(answer: Answer) -> list[str]:
    assert answer.status == 200, answer
    return [job["id"] for job in answer.body["jobs"]]


def several(mill: Mill, number: int = 3) -> list[str]:
    """Submits jobs a second apart. Returns their ids, newest first."""
    found = []
    for _ in range(number):
        mill.late += SECOND
        found.append(mill.accepted())
    return found[::-1]


def test_jobs_are_listed_newest_first_without_their_large_fields(mill: Mill) -> None:
    jobs = several(mill)

    answer = listed()

    assert ids(answer) == jobs
    whole = mill.get(jobs[0]).body
    assert answer.body["jobs"][0] == {name: whole[name] for name in answer.body["jobs"][0]}
    assert whole.keys() - answer.body["jobs"][0].keys() == {
        "payload",
        "result",
        "errors",
        "redrives",
        "checkpoint",
        "hops",
        "parent",
        "cancelled_by",
        "signals",
        "steps",
        "undo",
        "undone_at",
        "undoes",
        "supersedes",
        "superseded_by",
        "history",
    }


def test_cursors_lead_through_all_pages_to_the_end(mill: Mill) -> None:
    jobs = several(mill, 5)
    found, query = [], {"limit": "2"}

    while True:
        answer = listed(query)
        found.append(ids(answer))
        if answer.body["cursor"] is None:
            break
        query["cursor"] = answer.body["cursor"]

    assert [job for page in found for job in page] == jobs
    assert found == [jobs[:2], jobs[2:4], jobs[4:]]


def test_a_page_has_twenty_jobs_by_default(mill: Mill) -> None:
    several(mill, DEFAULT_PAGE + 1)

    assert len(ids(listed())) == DEFAULT_PAGE
    assert len(ids(listed({"limit": "100"}))) == DEFAULT_PAGE + 1


def test_filters_by_state_and_type_combine(mill: Mill) -> None:
    mill.accepted()
    mill.run()
    queued = mill.accepted()
    other = mill.accepted(job_type="test.noop")

    assert ids(listed({"state": "queued", "type": "test.scripted"})) == [queued]
    assert ids(listed({"type": "test.noop"})) == [other]
    assert len(ids(listed({"state": "succeeded"}))) == 1
    assert ids(listed({"state": "dead"})) == ids(listed({"type": "no.such.type"})) == []


def test_a_tag_selects_jobs_and_combines_with_the_other_filters(mill: Mill) -> None:
    tagged = mill.accepted(tags=["signup", "campaign:7"])
    other = mill.accepted(job_type="test.noop", tags=["signup"])
    mill.accepted()

    assert set(ids(listed({"tag": "signup"}))) == {tagged, other}
    assert ids(listed({"tag": "campaign:7"})) == ids(listed({"tag": "signup", "type": "test.scripted"})) == [tagged]
    assert ids(listed({"tag": "sign"})) == ids(listed({"tag": "signup", "state": "dead"})) == []


def test_since_and_until_bound_the_time_of_submission(mill: Mill) -> None:
    jobs = several(mill, 3)
    at = {job: mill.get(job).body["created_at"] for job in jobs}

    assert ids(listed({"since": at[jobs[1]]})) == jobs[:2]
    assert ids(listed({"until": at[jobs[1]]})) == jobs[2:]
    assert ids(listed({"since": at[jobs[2]], "until": at[jobs[0]]})) == jobs[1:]
    offset = at[jobs[1]].replace("Z", "%2B00:00")
    assert ids(listed(f"since={offset}&until={at[jobs[0]]}")) == [jobs[1]]


def test_a_caller_does_not_see_the_jobs_of_another(mill: Mill) -> None:
    several(mill)

    assert ids(listed(iam=ANOTHER)) == []


def test_finished_jobs_are_listed_until_their_retention_ends(mill: Mill) -> None:
    job = mill.accepted()
    mill.run()
    assert ids(listed()) == [job]

    mill.late = RETENTION + SECOND

    assert ids(listed({"since": mill.job(job).created_at.isoformat()})) == []


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("state=lost", "#/state"),
        ("state=", "#/state"),
        ("state=dead&state=queued", "#/state"),
        ("state=DEAD", "#/state"),
        ("type=", "#/type"),
        (f"type={'x' * 101}", "#/type"),
        ("tag=", "#/tag"),
        ("tag=Signup", "#/tag"),
        ("tag=a&tag=b", "#/tag"),
        ("tag=signup%0A", "#/tag"),
        ("limit=0", "#/limit"),
        ("limit=101", "#/limit"),
        ("limit=-1", "#/limit"),
        ("limit=1.0", "#/limit"),
        ("limit=%201", "#/limit"),
        ("limit=1_0", "#/limit"),
        ("limit=%D9%A1", "#/limit"),
        ("limit=ten", "#/limit"),
        ("limit=", "#/limit"),
        ("since=yesterday", "#/since"),
        ("since=1700000000", "#/since"),
        ("since=2026-01-31", "#/since"),
        ("since=2026-01-31T12:00:00", "#/since"),
        ("since=2026-02-30T12:00:00Z", "#/since"),
        ("since=2026-01-31T12:00:00+00:00", "#/since"),
        ("since=0001-01-01T00:00:00%2B23:59", "#/since"),
        ("since=1969-12-31T23:59:59Z", "#/since"),
        ("since=9999-12-31T23:59:59.9999999Z", "#/since"),
        ("since=2100-01-01T00:00:00Z", "#/since"),
        ("since=2026-01-31T12:00:00Z&until=2026-01-31T12:00:00Z", "#/since"),
        ("until=9999-12-31T23:59:59-23:59", "#/until"),
        ("until=tomorrow", "#/until"),
        ("cursor=", "#/cursor"),
        ("cursor=AAAA", "#/cursor"),
        (f"cursor={'A' * 300}", "#/cursor"),
        (f"cursor={'A' * 301}", "#/cursor"),
        ("cursor=%F0%9F%92%A5", "#/cursor"),
        ("tenant=another", "#/tenant"),
        ("Limit=5", "#/Limit"),
    ],
)
def test_an_invalid_parameter_is_named(mill: Mill, query: str, wrong: str) -> None:
    answer = listed(query)

    assert answer.status == 422, answer
    assert answer.body["type"] == "urn:tidemill:problem:invalid-query"
    assert [error["pointer"] for error in answer.body["errors"]] == [wrong]


def test_one_response_names_every_fault(mill: Mill) -> None:
    answer = listed("state=lost&limit=0&since=yesterday")

    assert [error["pointer"] for error in answer.body["errors"]] == ["#/state", "#/since", "#/limit"]


def test_a_cursor_is_valid_for_its_own_tenant_and_filters_only(mill: Mill) -> None:
    several(mill)
    since = mill.get(mill.accepted()).body["created_at"]
    query = {"limit": "1", "state": "queued", "cursor": listed({"limit": "1", "state": "queued"}).body["cursor"]}
    assert len(ids(listed(query))) == 1

    for changed in (
        query | {"state": "retrying"},
        query | {"type": "test.scripted"},
        query | {"tag": "signup"},
        query | {"since": since},
        query | {"until": since},
        {name: value for name, value in query.items() if name != "state"},
        query | {"cursor": query["cursor"][:-2]},
    ):
        answer = listed(changed)
        assert (answer.status, answer.body["errors"][0]["pointer"]) == (422, "#/cursor")
    assert listed(query, iam=ANOTHER).status == 422
    # The page size may change: it does not filter.
    assert len(ids(listed(query | {"limit": "2"}))) == 2


def test_the_key_is_fetched_once_and_only_for_a_cursor(mill: Mill, secrets: Secrets) -> None:
    several(mill)
    listed({"since": mill.job(mill.accepted()).created_at.isoformat()})
    listed({"state": "lost"})
    assert secrets.asked == 0

    listed({"limit": "1"})
    listed({"limit": "1"})

    assert secrets.asked == 1


@pytest.mark.parametrize("cold", [False, True])
def test_a_cursor_outlives_a_rotation_of_the_key_but_not_two(mill: Mill, secrets: Secrets, cold: bool) -> None:
    several(mill)
    cursor = listed({"limit": "1"}).body["cursor"]

    for number, status in enumerate([200, 422]):
        secrets.rotate(f"new key {number}")
        if cold:
            forget()
        mill.late += LONGEST_USE
        assert listed({"limit": "1", "cursor": cursor}).status == status


def test_a_process_that_knows_the_former_key_accepts_a_cursor_of_the_new_one(mill: Mill, secrets: Secrets) -> None:
    several(mill)
    secrets.rotate("new key")
    cursor = listed({"limit": "1"}).body["cursor"]
    # The process read the key before the rotation.
    forget()
    new, secrets.key, secrets.previous = secrets.key, "a key", None
    listed({"limit": "1"})
    secrets.rotate(new)
    mill.late += SHORTEST_USE

    assert listed({"limit": "1", "cursor": cursor}).status == 200


def test_forged_cursors_make_a_process_read_the_key_once_a_second(mill: Mill, secrets: Secrets) -> None:
    mill.stop_clock()
    several(mill)
    listed({"limit": "1"})
    for _ in range(3):
        assert listed({"limit": "1", "cursor": "forged"}).status == 422
    assert secrets.asked == 1

    mill.late += SHORTEST_USE
    for _ in range(3):
        assert listed({"limit": "1", "cursor": "forged"}).status == 422
    assert secrets.asked == 2


def test_a_stage_without_the_index_explains_how_to_turn_it_on(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    job = mill.accepted()
    monkeypatch.setenv(Env.LISTING, "")
    forget()

    answer = listed()

    assert (answer.status, answer.body["type"]) == (404, "urn:tidemill:problem:listing-off")
    assert "-c listing=on" in answer.body["detail"]
    assert request("GET", f"/jobs/{job}").status == 200


def test_a_caller_without_an_identity_is_refused(mill: Mill) -> None:
    assert listed(iam={}).status == 403
