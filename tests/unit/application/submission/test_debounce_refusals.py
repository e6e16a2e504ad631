"""Debounced submissions that are refused, each with the path of its fault, and nothing stored."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job, a_job_type, fresh_token, types_of
from tests.support.job_tables import Table
from tests.support.single_job import Clock, Inline
from tidemill.application.debounce.debouncing import Debouncer
from tidemill.application.features import submit_features
from tidemill.application.ports import JobStore
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Submit
from tidemill.domain.errors import InvalidPayloadError
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission, Unique

TYPES = types_of(a_job_type(), replace(a_job_type(name="test.daily"), unique=timedelta(days=1)))
Post = Callable[..., Accepted]


def debounced(**asked: Any) -> Submission:
    fields: dict[str, Any] = {"debounce": 30 * SECOND, "debounce_key": "ada", "replace": "payload"} | asked
    return Submission(type="test.job", **fields)


@pytest.fixture
def submit(store: JobStore, clock: Clock) -> Submit:
    debouncer = Debouncer(store=store, payloads=Inline(), clock=clock)
    return submit_features.submit(
        store=store, payloads=Inline(), job_types=TYPES, clock=clock, new_id=fresh_token, debounce=debouncer.accept
    )


@pytest.fixture
def post(submit: Submit) -> Post:
    return lambda **asked: submit(debounced(**asked), tenant=TENANT, trace=fresh_token())


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"key": "k"}, "/idempotency_key"),
        ({"unique": Unique(period=SECOND)}, "/unique"),
        ({"group": "orders"}, "/group"),
        ({"batch": "b"}, "/batch"),
        ({"supersedes": "k"}, "/supersedes"),
        ({"delay": SECOND}, "/delay_seconds"),
        ({"run_at": NOW + SECOND}, "/run_at"),
        ({"deadline": NOW + SECOND}, "/deadline"),
        ({"debounce": timedelta(days=367)}, "/debounce_seconds"),
        ({"debounce": timedelta(days=367), "debounce_max": SECOND}, "/debounce_seconds"),
        ({"debounce": -SECOND}, "/debounce_seconds"),
        ({"debounce_max": SECOND}, "/debounce_max_seconds"),
        ({"debounce_max": timedelta(days=367)}, "/debounce_max_seconds"),
        ({"debounce_key": ""}, "/debounce_key"),
        ({"debounce_key": None}, "/debounce_key"),
        ({"replace": "all"}, "/replace"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_path(
    post: Post, table: Table, asked: dict[str, Any], path: str
) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        post(**asked)

    assert [fault.path for fault in refused.value.faults] == [path]
    assert table.client.scan(TableName=table.name)["Items"] == []


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"debounce_key": "k"}, "/debounce_key"),
        ({"debounce_max": SECOND}, "/debounce_max_seconds"),
        ({"replace": "payload"}, "/replace"),
    ],
)
def test_the_options_need_a_debounce(submit: Submit, asked: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        submit(Submission(type="test.job", **asked), tenant=TENANT, trace="t")

    assert [fault.path for fault in refused.value.faults] == [path]


def test_a_type_that_is_unique_is_not_debounced(submit: Submit) -> None:
    with pytest.raises(InvalidPayloadError, match="/unique"):
        submit(Submission(type="test.daily", debounce=SECOND), tenant=TENANT, trace="t")


def test_a_follow_up_is_not_debounced(submit: Submit) -> None:
    parent = a_job()

    with pytest.raises(InvalidPayloadError, match="/debounce_seconds"):
        submit.prepare_follow_up(debounced(), parent, index=0)


def test_it_is_refused_where_nothing_can_look_for_the_earlier_job(store: JobStore, clock: Clock) -> None:
    submit = submit_features.submit(store=store, payloads=Inline(), job_types=TYPES, clock=clock, new_id=fresh_token)

    with pytest.raises(InvalidPayloadError, match="/debounce_seconds"):
        submit(debounced(), tenant=TENANT, trace="t")
