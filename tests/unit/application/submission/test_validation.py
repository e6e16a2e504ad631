"""The checks of a submission: the path of each fault, and no write after a refusal."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, TENANT, a_job_type, fresh_token, types_of
from tests.support.job_tables import Table
from tests.support.single_job import Clock, Inline
from tidemill.application.features import submit_features
from tidemill.application.features.submit_features import RULES
from tidemill.application.submission.validation import LONGEST_ID, LONGEST_KEY, LONGEST_NAME_BYTES, faults
from tidemill.domain.errors import InvalidPayloadError
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.domain.submission.tenants import is_tenant
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.names import Lane
from tidemill.powertools.idempotency import insert_once

Paths = Callable[..., list[str]]
HOUR = timedelta(hours=1)
#: In UTC, it lies in the year 10000, which `datetime` cannot hold.
END_OF_TIME = datetime.max.replace(tzinfo=timezone(-HOUR))


@pytest.fixture
def paths(store: DynamoJobStore, table: Table, clock: Clock) -> Paths:
    """The paths of the faults of a submission, after which the table is empty."""
    types = types_of(a_job_type())
    submit = submit_features.submit(
        store=store, payloads=Inline(), job_types=types, clock=clock, new_id=fresh_token, insert_once=insert_once
    )

    def paths(payload: Any = None, **asked: Any) -> list[str]:
        submission = Submission(type="test.job", payload=payload or {}, **asked)
        with pytest.raises(InvalidPayloadError) as refused:
            submit(submission, tenant=TENANT, trace="request")
        assert table.client.scan(TableName=table.name)["Count"] == 0
        return [fault.path for fault in refused.value.faults]

    return paths


def _nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ({"delay": -MILLISECOND}, "/delay_seconds"),
        ({"delay": LONGEST_SPAN + MILLISECOND}, "/delay_seconds"),
        ({"delay": timedelta.max}, "/delay_seconds"),
        ({"run_at": NOW - timedelta(minutes=2)}, "/run_at"),
        ({"run_at": NOW + LONGEST_SPAN + MILLISECOND}, "/run_at"),
        ({"run_at": datetime.max.replace(tzinfo=UTC)}, "/run_at"),
        ({"run_at": NOW.replace(tzinfo=None)}, "/run_at"),
        ({"run_at": END_OF_TIME, "key": "k"}, "/run_at"),
        ({"delay": SECOND, "run_at": NOW + SECOND}, "/run_at"),
        ({"max_age": timedelta(0)}, "/max_age_seconds"),
        ({"max_age": LONGEST_SPAN + MILLISECOND}, "/max_age_seconds"),
        ({"deadline": NOW}, "/deadline"),
        ({"deadline": NOW.replace(tzinfo=None)}, "/deadline"),
        ({"deadline": END_OF_TIME}, "/deadline"),
        ({"deadline": NOW + HOUR, "delay": HOUR}, "/deadline"),
        ({"deadline": NOW + HOUR, "run_at": NOW + HOUR}, "/deadline"),
        ({"group": ""}, "/group"),
        ({"group": "x" * (LONGEST_NAME_BYTES + 1)}, "/group"),
        ({"group": "\N{GRINNING FACE}" * (LONGEST_NAME_BYTES // 4 + 1)}, "/group"),
        ({"group": "\ud800"}, "/group"),
        ({"tags": ["a", "b", "c", "d", "e", "f"]}, "/tags"),
        ({"tags": ["a", "a"]}, "/tags"),
        ({"tags": "a"}, "/tags"),
        ({"tags": ["a", "x" * 33]}, "/tags/1"),
        ({"tags": ["Upper"]}, "/tags/0"),
        ({"tags": ["-a"]}, "/tags/0"),
        ({"tags": ["a\n"]}, "/tags/0"),
        ({"tags": ["\N{ARABIC-INDIC DIGIT ONE}"]}, "/tags/0"),
        ({"tags": [""]}, "/tags/0"),
        ({"lane": Lane.CRITICAL}, "/lane"),
        ({"key": ""}, "/idempotency_key"),
        ({"key": "x" * (LONGEST_KEY + 1)}, "/idempotency_key"),
        ({"key": "k", "unique": Unique(period=HOUR)}, "/unique"),
        ({"unique": Unique(period=timedelta(0))}, "/unique/period_seconds"),
        ({"unique": Unique(period=LONGEST_SPAN + SECOND)}, "/unique/period_seconds"),
        ({"unique": Unique(period=HOUR, key="")}, "/unique/key"),
        ({"unique": Unique(period=HOUR, key="x" * 129)}, "/unique/key"),
        ({"payload": {"at": NOW}}, "/payload"),
        ({"payload": [1]}, "/payload"),
        ({"payload": {"n": 10**5000}}, "/payload"),
    ],
)
def test_an_invalid_member_is_refused_with_its_path(paths: Paths, asked: dict[str, Any], path: str) -> None:
    assert paths(**asked) == [path]


@pytest.mark.parametrize(
    "asked",
    [
        {"delay": timedelta(0)},
        {"delay": LONGEST_SPAN},
        {"run_at": NOW - timedelta(minutes=1)},
        {"run_at": NOW + LONGEST_SPAN},
        {"max_age": MILLISECOND},
        {"max_age": LONGEST_SPAN},
        {"deadline": NOW + MILLISECOND},
        {"deadline": NOW + HOUR + MILLISECOND, "delay": HOUR},
        {"deadline": NOW + HOUR + MILLISECOND, "run_at": NOW + HOUR},
        {"deadline": NOW + MILLISECOND, "run_at": NOW - SECOND},
        {"group": "x"},
        {"group": "x" * LONGEST_NAME_BYTES},
        {"tags": ["a", "b", "c", "d", "x" * 32]},
        {"lane": Lane.DEFAULT},
        {"lane": Lane.BULK},
        {"key": "x"},
        {"key": "x" * LONGEST_KEY},
        {"unique": Unique(period=SECOND)},
        {"unique": Unique(period=LONGEST_SPAN, key="x" * LONGEST_NAME_BYTES)},
        {"supersedes": "x"},
        {"supersedes": "x" * LONGEST_KEY},
        {"batch": "x"},
        {"batch": "x" * LONGEST_ID},
        {"debounce": timedelta(0)},
        {"debounce": LONGEST_SPAN, "debounce_max": LONGEST_SPAN},
        {"debounce": HOUR, "debounce_max": HOUR, "debounce_key": "x", "replace": "payload"},
    ],
)
def test_a_member_at_the_end_of_its_range_is_accepted(asked: dict[str, Any]) -> None:
    assert faults(Submission(type="test.job", payload={}, **asked), a_job_type(), now=NOW, rules=RULES) == []


def test_all_faults_are_reported_at_once(paths: Paths) -> None:
    found = paths({"n": float("nan")}, lane=Lane.CRITICAL, group="", delay=-SECOND)

    assert found == ["/lane", "/group", "/delay_seconds", "/payload"]


@pytest.mark.parametrize("payload", [{"n": float("inf")}, _nested(10_000)], ids=["infinite", "bottomless"])
def test_a_payload_that_is_never_valid_needs_no_lookup_of_an_earlier_job(paths: Paths, payload: Any) -> None:
    assert paths(payload, key="key", run_at=NOW - HOUR)[-1] == "/payload"


@pytest.mark.parametrize("batch", ["", "x" * (LONGEST_ID + 1), "guest#x", "\ud800", "\u00e9"])
def test_a_text_that_no_job_has_as_its_id_is_refused_as_a_batch(paths: Paths, batch: str) -> None:
    assert paths(batch=batch) == ["/batch"]


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("x", True),
        ("x" * 512, True),
        ("https://issuer.example/|auth0|7", True),
        ("", False),
        ("x" * 513, False),
        ("!group#x", False),
        ("a b", False),
        ("ü", False),
        ("x\n", False),
    ],
)
def test_a_tenant_is_visible_ascii_and_does_not_start_with_an_exclamation_mark(name: str, holds: bool) -> None:
    assert is_tenant(name) is holds
