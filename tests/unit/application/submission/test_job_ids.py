"""The derived ids: what makes two of them the same, and what keeps them apart."""

from datetime import timedelta
from uuid import UUID

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, with_changes
from tidemill.application.submission.job_ids import (
    RESERVED_KEYS,
    callback_id,
    follow_up_id,
    keyed_job_id,
    node_job_id,
    period_end,
    submitted_job_id,
    unique_job_id,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Unique
from tidemill.domain.time_constants import EPOCH

HOUR = timedelta(hours=1)
PARENT = a_job(tenant="t", id="p")


def known() -> dict[str, str]:
    """A repeated request of an older client, or a settle that an older version began, must find the same job."""
    return {
        "keyed": keyed_job_id("t", "k"),
        "reserved": submitted_job_id("t", "event/k"),
        "follow-up": follow_up_id(PARENT, 0),
        "node": node_job_id(PARENT, "n"),
        "callback": callback_id(PARENT, "n"),
        "unique key": unique_job_id("t", "test.job", Unique(period=HOUR, key="k"), "h", now=NOW),
        "unique payload": unique_job_id("t", "test.job", Unique(period=HOUR), "h", now=NOW),
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("keyed", "6f809663-41e8-54bb-bcb4-cbd625bd247f"),
        ("reserved", "b60e142c-92be-5ed5-bea1-370aef06c202"),
        ("follow-up", "30a503d6-1e84-587a-98d7-4d947ebbaf1d"),
        ("callback", "1e513fe4-be75-591d-a078-df7a3776bdae"),
        ("node", "473d4485-68db-5c2f-8990-01bd53e9e9bc"),
        ("unique key", "19398672-afae-5c9e-843d-ddbecc02a9bf"),
        ("unique payload", "cdb9aa11-e2b6-50ea-9234-7800f4387981"),
    ],
)
def test_an_id_is_the_same_in_every_version(name: str, expected: str) -> None:
    assert known()[name] == expected


def test_ids_of_two_kinds_never_are_the_same() -> None:
    ids = known().values()
    assert len(set(ids)) == len(ids)
    assert {UUID(each).version for each in ids} == {5}


@pytest.mark.parametrize("key", ["event/k", "batch/k", "flow/k"])
def test_a_caller_that_chooses_a_reserved_key_gets_another_id(key: str) -> None:
    assert key.startswith(RESERVED_KEYS)
    assert submitted_job_id("t", key) != keyed_job_id("t", key)


@pytest.mark.parametrize("key", ["k", "event", "my event/k", "Event/k"])
def test_any_other_key_is_the_key_of_its_job(key: str) -> None:
    assert submitted_job_id("t", key) == keyed_job_id("t", key)


def test_a_key_belongs_to_its_tenant() -> None:
    assert keyed_job_id("t", "k") != keyed_job_id("u", "k")
    assert submitted_job_id("t", "flow/k") != submitted_job_id("u", "flow/k")


def _unique(
    *, tenant: str = "t", type_: str = "a", key: str | None = "k", payload: str = "h", period: timedelta = HOUR
) -> str:
    return unique_job_id(tenant, type_, Unique(period=period, key=key), payload, now=NOW)


def test_a_unique_job_is_the_same_by_its_key_or_else_by_its_payload() -> None:
    assert _unique() == _unique(payload="other")
    others = [
        _unique(tenant="u"),
        _unique(type_="b"),
        _unique(key="other"),
        _unique(period=2 * HOUR),
        _unique(key=None),
        _unique(key=None, payload="other"),
        # A key that looks like a payload.
        _unique(key="h"),
    ]
    assert len({_unique(), *others}) == 1 + len(others)


def test_a_period_begins_and_ends_for_all_at_the_same_time() -> None:
    unique = Unique(period=HOUR, key="k")
    begin = EPOCH + 1_000 * HOUR

    def at(moment: timedelta) -> str:
        return unique_job_id("t", "a", unique, "h", now=begin + moment)

    assert at(timedelta(0)) == at(HOUR - MILLISECOND)
    assert len({at(-MILLISECOND), at(timedelta(0)), at(HOUR)}) == 3
    assert [period_end(unique, begin + moment) - begin for moment in (-MILLISECOND, timedelta(0), HOUR - SECOND)] == [
        timedelta(0),
        HOUR,
        HOUR,
    ]


@pytest.mark.parametrize("changed", [{"tenant": "u"}, {"id": "q"}, {"created_at": NOW + SECOND}])
def test_another_job_has_other_follow_ups_and_nodes(changed: dict[str, object]) -> None:
    other: Job = with_changes(PARENT, **changed)

    assert follow_up_id(other, 0) != follow_up_id(PARENT, 0)
    assert node_job_id(other, "n") != node_job_id(PARENT, "n")


def test_each_follow_up_and_each_node_is_a_job_of_its_own() -> None:
    assert follow_up_id(PARENT, 0) != follow_up_id(PARENT, 1)
    assert node_job_id(PARENT, "n") != node_job_id(PARENT, "m")


def test_each_callback_of_each_batch_is_a_job_of_its_own() -> None:
    ids = [callback_id(batch, name) for batch in (PARENT, replace(PARENT, created_at=NOW + SECOND)) for name in "nm"]
    assert len(set(ids)) == 4
