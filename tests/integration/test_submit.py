"""All that a submission may ask for over HTTP, and that one that is refused leaves nothing behind."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support import job_tables
from tests.support.builders import RETENTION, SECOND
from tests.support.deployed_functions import Mill, forget
from tests.support.http_events import Answer
from tidemill.aws import clients
from tidemill.domain.states import State
from tidemill.dynamodb.payloads import LARGEST_INLINE_BYTES, LARGEST_ITEM_BYTES
from tidemill.names import LARGEST_BODY_BYTES, LISTING_KEY, Env

YEAR_SECONDS = 366 * 86_400
Ask = Callable[..., Answer]


@pytest.fixture
def ask(mill: Mill) -> Ask:
    """Submit with these members of the body."""

    def ask(*, key: str | None = None, **members: Any) -> Answer:
        return mill.post_text(json.dumps({"type": "test.scripted", **members}), key=key)

    return ask


@pytest.fixture
def files(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Any:
    s3 = job_tables.client("s3")
    s3.create_bucket(Bucket="files", CreateBucketConfiguration={"LocationConstraint": job_tables.REGION})
    monkeypatch.setattr(clients, "s3", lambda: s3)
    return s3


def _in(mill: Mill, after: timedelta) -> str:
    """A moment from now, as JSON writes it."""
    return (mill.now() + after).isoformat()


def _pointers(answer: Answer) -> list[str]:
    assert answer.status == 422, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    return [error["pointer"] for error in answer.body["errors"]]


def test_a_delayed_job_is_answered_as_scheduled_and_waits(mill: Mill, ask: Ask) -> None:
    soon, later = ask(delay_seconds=1.5), ask(run_at=_in(mill, timedelta(hours=1)))

    assert (soon.status, later.status) == (202, 202)
    assert (soon.body["state"], later.body["state"]) == ("queued", "scheduled")
    assert soon.body["run_at"] == soon.body["due"]
    assert mill.job(soon.body["id"]).due == mill.job(soon.body["id"]).created_at + 1.5 * SECOND
    assert mill.get(later.body["id"]).body == later.body


def test_a_job_shows_the_options_of_its_submission(mill: Mill, ask: Ask) -> None:
    answer = ask(lane="bulk", group="orders/7", deadline=_in(mill, timedelta(hours=1)), max_age_seconds=60)

    assert answer.status == 202
    assert (answer.body["lane"], answer.body["group"], answer.body["sequence"]) == ("bulk", "orders/7", 1)
    assert answer.body["deadline"]
    assert mill.job(answer.body["id"]).lifetime.useful_until == mill.job(answer.body["id"]).created_at + 60 * SECOND
    assert answer.body["useful_until"]
    assert mill.get(answer.body["id"]).body == answer.body


def test_a_null_member_means_the_same_as_an_absent_one(ask: Ask) -> None:
    names = ("lane", "delay_seconds", "run_at", "group", "deadline", "max_age_seconds", "unique", "tags")

    assert ask(key="k", **dict.fromkeys(names)).status == 202
    assert ask(key="k").status == 200


@pytest.mark.parametrize(
    ("members", "pointers"),
    [
        ({"delay_seconds": -1}, ["#/delay_seconds"]),
        ({"delay_seconds": YEAR_SECONDS + 1}, ["#/delay_seconds"]),
        ({"delay_seconds": 10**400}, ["#/delay_seconds"]),
        ({"delay_seconds": "1"}, ["#/delay_seconds"]),
        ({"delay_seconds": True}, ["#/delay_seconds"]),
        ({"run_at": "2020-01-01T00:00:00Z"}, ["#/run_at"]),
        ({"run_at": "2999-01-01T00:00:00Z"}, ["#/run_at"]),
        ({"run_at": "2999-01-01T00:00:00"}, ["#/run_at"]),
        ({"run_at": "2999-01-01"}, ["#/run_at"]),
        ({"run_at": "2999-W01-1T00:00:00Z"}, ["#/run_at"]),
        ({"run_at": "2999-13-01T00:00:00Z"}, ["#/run_at"]),
        ({"run_at": "0001-01-01T00:00:00+14:00"}, ["#/run_at"]),
        ({"run_at": "9999-12-31T23:59:59.9999999-14:00"}, ["#/run_at"]),
        ({"run_at": "\u0662\u0660\u0663\u0660-01-01T00:00:00Z"}, ["#/run_at"]),
        ({"run_at": 1_900_000_000}, ["#/run_at"]),
        ({"max_age_seconds": 0}, ["#/max_age_seconds"]),
        ({"deadline": "2020-01-01T00:00:00Z"}, ["#/deadline"]),
        ({"deadline": "tomorrow"}, ["#/deadline"]),
        ({"group": ""}, ["#/group"]),
        ({"group": "x" * 129}, ["#/group"]),
        ({"group": "\ud800"}, ["#/group"]),
        ({"group": 7}, ["#/group"]),
        ({"tags": ["a", "b", "c", "d", "e", "f"]}, ["#/tags"]),
        ({"tags": ["a", "a"]}, ["#/tags"]),
        ({"tags": "a"}, ["#/tags"]),
        ({"tags": ["a", "B"]}, ["#/tags/1"]),
        ({"tags": [1]}, ["#/tags/0"]),
        ({"lane": "critical"}, ["#/lane"]),
        ({"lane": "express"}, ["#/lane"]),
        ({"lane": 1}, ["#/lane"]),
        ({"unique": {}}, ["#/unique/period_seconds"]),
        ({"unique": {"period_seconds": 0}}, ["#/unique/period_seconds"]),
        ({"unique": {"period_seconds": YEAR_SECONDS + 1}}, ["#/unique/period_seconds"]),
        ({"unique": {"period_seconds": 60, "key": ""}}, ["#/unique/key"]),
        ({"unique": {"period_seconds": 60, "keys": "x"}}, ["#/unique/keys"]),
        ({"unique": 60}, ["#/unique"]),
        ({"retention": 1, "delay": 1}, ["#/retention", "#/delay"]),
        ({"lane": "critical", "group": "", "payload": {"n": "x"}}, ["#/lane", "#/group", "#/payload/n"]),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_an_invalid_member_is_refused_with_its_path_and_nothing_is_written(
    mill: Mill, ask: Ask, members: dict[str, Any], pointers: list[str]
) -> None:
    assert _pointers(ask(**members)) == pointers
    assert mill.stored() == 0


def test_contradictory_times_are_refused(mill: Mill, ask: Ask) -> None:
    hour, two_hours = _in(mill, timedelta(hours=1)), _in(mill, timedelta(hours=2))

    assert _pointers(ask(delay_seconds=1, run_at=hour)) == ["#/run_at"]
    assert _pointers(ask(run_at=two_hours, deadline=hour)) == ["#/deadline"]
    assert _pointers(ask(delay_seconds=3600, deadline=hour)) == ["#/deadline"]
    assert mill.stored() == 0


def test_a_submission_with_both_unique_and_a_key_is_refused(mill: Mill, ask: Ask) -> None:
    assert _pointers(ask(unique={"period_seconds": 60}, key="k")) == ["#/unique"]
    assert mill.stored() == 0


def test_tags_are_shown_sorted_and_belong_to_the_body_of_the_key(mill: Mill, ask: Ask) -> None:
    tags = ["b:2", "0.a_-" + "x" * 27]

    answer = ask(tags=tags, key="k")

    assert answer.body["tags"] == sorted(tags)
    assert mill.get(answer.body["id"]).body == answer.body
    assert ask(tags=tags[::-1], key="k").status == 200
    assert ask(tags=tags[:1], key="k").status == ask(key="k").status == 422


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1e400"])
@pytest.mark.parametrize("member", ["delay_seconds", "unique"])
def test_a_time_too_large_for_a_date_is_refused(mill: Mill, member: str, number: str) -> None:
    value = f'{{"period_seconds": {number}}}' if member == "unique" else number

    answer = mill.post_text(f'{{"type": "test.scripted", "{member}": {value}}}')

    assert answer.status == 422
    assert mill.stored() == 0


def test_a_replay_whose_start_time_is_now_past_is_answered_with_the_job(mill: Mill, ask: Ask) -> None:
    asked = {"run_at": _in(mill, timedelta(hours=1)), "deadline": _in(mill, timedelta(hours=2)), "key": "k"}
    first = ask(**asked)
    mill.late = timedelta(hours=3)

    again = ask(**asked)

    assert (again.status, again.headers["Idempotent-Replayed"]) == (200, "true")
    assert again.body == first.body
    assert ask(**asked | {"group": "g"}).status == 422
    assert mill.stored() == 1


def test_a_first_submission_with_a_past_time_is_refused(mill: Mill, ask: Ask) -> None:
    past = _in(mill, -timedelta(hours=1))

    assert _pointers(ask(run_at=past, key="k")) == ["#/run_at"]
    assert mill.stored() == 0


def test_a_valid_submission_is_written_without_a_read(mill: Mill, ask: Ask) -> None:
    mill.read_configuration()
    ask(run_at=_in(mill, timedelta(hours=1)), key="k")

    assert dict(mill.calls) == {"dynamodb.PutItem": 1}


def test_a_submission_of_an_existing_unique_job_is_answered_as_a_replay(mill: Mill, ask: Ask) -> None:
    first = ask(payload={"n": 1}, unique={"period_seconds": YEAR_SECONDS, "key": "k"})

    again = ask(payload={"n": 2}, unique={"period_seconds": YEAR_SECONDS, "key": "k"})

    assert (first.status, again.status, again.headers["Idempotent-Replayed"]) == (202, 200, "true")
    assert (again.body["id"], again.body["payload"]) == (first.body["id"], {"n": 1})
    assert mill.stored() == 1


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("size_bytes", [LARGEST_INLINE_BYTES, LARGEST_ITEM_BYTES, LARGEST_BODY_BYTES])
def test_a_payload_of_any_size_reaches_its_handler_and_is_deleted_with_its_job(
    mill: Mill, ask: Ask, files: Any, size_bytes: int
) -> None:
    mill.script.handler = lambda payload, _run: len(payload.model_dump()["text"])
    text = "x" * (size_bytes - 60)

    answer = ask(payload={"text": text})
    mill.run()

    assert answer.status == 202
    job = mill.job(answer.body["id"])
    assert (job.state, job.result) == (State.SUCCEEDED, str(len(text)))
    assert mill.get(job.id).body["payload"] == {"text": text}
    item = mill.table.item(job)
    assert item is not None
    assert len(json.dumps(item)) < 2_000
    mill.table.client.delete_item(TableName=mill.table.name, Key={"pk": item["pk"]})
    mill.publish()
    assert mill.stored() == 0
    assert files.list_objects_v2(Bucket="files")["KeyCount"] == 0


@pytest.mark.usefixtures("files")
def test_a_stage_may_store_payloads_of_two_kilobytes_as_files(
    mill: Mill, ask: Ask, files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(Env.PAYLOAD_ITEM_BYTES, "1024")
    forget()
    mill.script.handler = lambda payload, _run: len(payload.model_dump()["text"])

    answer = ask(payload={"text": "x" * 2_000})

    assert files.list_objects_v2(Bucket="files")["KeyCount"] == 1
    mill.run()
    assert mill.job(answer.body["id"]).result == "2000"


@pytest.mark.usefixtures("files")
def test_a_replay_with_a_large_payload_is_answered_with_it(mill: Mill, ask: Ask) -> None:
    first = ask(payload={"text": "x" * 5_000}, key="k")

    again = ask(payload={"text": "x" * 5_000}, key="k")

    assert (again.status, again.body) == (200, first.body)
    assert mill.stored() == 2


def test_a_payload_of_10_kilobytes_costs_one_more_call(mill: Mill, ask: Ask) -> None:
    mill.read_configuration()
    ask(payload={"text": "x" * 10_240})

    assert dict(mill.calls) == {"dynamodb.PutItem": 2}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
MOMENTS = st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat) | st.from_regex(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})", fullmatch=True
)
BODIES = st.fixed_dictionaries(
    {"type": st.sampled_from(["test.scripted", "test.noop", "none"])},
    optional={
        "payload": st.dictionaries(st.text(max_size=4), JSON, max_size=3) | JSON,
        "lane": st.sampled_from(["default", "bulk", "critical"]) | JSON,
        "delay_seconds": st.floats() | st.integers() | JSON,
        "run_at": MOMENTS | JSON,
        "deadline": MOMENTS | JSON,
        "max_age_seconds": st.floats() | st.integers() | JSON,
        "group": st.text(max_size=140) | JSON,
        "tags": st.lists(st.text("ab-", max_size=3), max_size=6) | JSON,
        "unique": st.fixed_dictionaries(
            {"period_seconds": st.floats() | st.integers() | JSON}, optional={"key": st.text() | JSON}
        )
        | JSON,
        "extra": JSON,
    },
)


@settings(max_examples=75, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(body={"type": "test.scripted", "payload": {"n": 10**400}}, key=None)
@example(body={"type": "test.scripted", "delay_seconds": 5e-324}, key=None)
@example(body={"type": "test.scripted", "deadline": "9999-12-31T23:59:59.999999+00:00"}, key=None)
@example(body={"type": "test.scripted", "unique": {"period_seconds": 1.0000001}}, key=None)
@given(body=BODIES, key=st.none() | st.from_regex(r"[!-~]{1,8}", fullmatch=True))
def test_every_random_body_gets_an_answer_without_an_internal_error(mill: Mill, body: Any, key: str | None) -> None:
    stored = mill.stored()

    answer = mill.post_text(json.dumps(body), key=key)

    assert answer.status in {200, 202, 400, 422}
    if answer.status not in {200, 202}:
        assert mill.stored() == stored
    else:
        shown = mill.get(answer.body["id"]).body
        assert shown == answer.body


def test_a_listed_job_is_in_the_index_from_its_creation(mill: Mill, ask: Ask) -> None:
    item = mill.table.item(mill.job(ask().body["id"]))

    assert item is not None
    assert LISTING_KEY in item


def test_the_next_job_may_use_the_key_and_payload_of_an_expired_one(mill: Mill, ask: Ask) -> None:
    first = mill.job(ask(payload={"text": "x" * 5_000}, key="k").body["id"])
    mill.run()
    mill.late = RETENTION + SECOND

    again = ask(payload={"text": "y" * 5_000}, key="k")

    assert (again.status, again.body["id"]) == (202, first.id)
    assert mill.get(first.id).body["payload"] == {"text": "y" * 5_000}
