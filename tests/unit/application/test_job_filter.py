"""`JobFilter`: each field, its ends, and the jobs that match neither."""

from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, an_error
from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.domain.attempt.error_fingerprint import job_fingerprint
from tidemill.domain.job import DeathReason
from tidemill.domain.records import replace
from tidemill.domain.states import State

JOB = a_job(
    tenant="t",
    id="j",
    type="test.job",
    state=State.DEAD,
    tags=("a", "b"),
    finished_at=NOW + SECOND,
    death=DeathReason.PERMANENT,
    errors=(an_error(error_class="KeyError"), an_error(error_class="ValueError", attempt=2)),
)
LIVE = a_job()


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({}, True),
        ({"ids": ["i", "j"]}, True),
        ({"ids": ["i"]}, False),
        ({"tenant": "t"}, True),
        ({"tenant": "u"}, False),
        ({"states": [State.DEAD, State.QUEUED]}, True),
        ({"states": [State.QUEUED]}, False),
        ({"types": ["test.job", "x"]}, True),
        ({"types": ["x"]}, False),
        ({"tag": "b"}, True),
        ({"tag": "c"}, False),
        ({"since": NOW}, True),
        ({"since": NOW + MILLISECOND}, False),
        ({"until": NOW + MILLISECOND}, True),
        ({"until": NOW}, False),
        ({"ended_since": NOW + SECOND}, True),
        ({"ended_since": NOW + SECOND + MILLISECOND}, False),
        ({"ended_until": NOW + SECOND + MILLISECOND}, True),
        ({"ended_until": NOW + SECOND}, False),
        ({"ended_since": NOW, "ended_until": NOW + SECOND}, False),
        ({"ended_since": NOW + 2 * SECOND, "ended_until": NOW + 3 * SECOND}, False),
        ({"deaths": [DeathReason.PERMANENT]}, True),
        ({"deaths": [DeathReason.GAVE_UP]}, False),
        # Only the last error counts.
        ({"error": "ValueError"}, True),
        ({"error": "KeyError"}, False),
        ({"fingerprint": job_fingerprint(JOB)}, True),
        ({"fingerprint": "KeyError: x"}, False),
        # A job must match each field.
        ({"tenant": "t", "ids": ["i"]}, False),
        ({"types": ["test.job"], "tag": "c"}, False),
    ],
)
def test_a_job_must_match_each_field_that_is_given(fields: dict[str, Any], matches: bool) -> None:
    assert (JOB in JobFilter(**fields)) is matches


@pytest.mark.parametrize(
    "fields",
    [
        {"ended_since": NOW},
        {"ended_until": NOW},
        {"error": "ValueError"},
        {"deaths": [DeathReason.PERMANENT]},
        {"tag": "a"},
    ],
)
def test_a_job_without_the_field_does_not_match(fields: dict[str, Any]) -> None:
    assert LIVE not in JobFilter(**fields)
    assert LIVE in ANY_JOB


def test_the_error_of_an_undeliverable_job_is_not_the_one_before_its_death() -> None:
    undeliverable = replace(JOB, death=DeathReason.UNDELIVERABLE)

    assert undeliverable not in JobFilter(error="ValueError")
    assert undeliverable in JobFilter(fingerprint="undeliverable")


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({}, True),
        ({"tenant": "t"}, True),
        ({"tenant": "u"}, False),
        ({"ids": ["j"]}, True),
        ({"ids": ["i"]}, False),
        ({"tenant": "t", "ids": ["i"]}, False),
        ({"tenant": "u", "ids": ["j"]}, False),
        # An entry of an index holds nothing of these.
        ({"states": [State.QUEUED], "until": NOW}, True),
    ],
)
def test_the_entry_of_an_index_is_judged_by_tenant_and_id(fields: dict[str, Any], fits: bool) -> None:
    assert JobFilter(**fields).fits_key("t", "j") is fits
