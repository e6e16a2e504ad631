"""What a job uses, by its profile."""

from dataclasses import replace
from typing import Any

import pytest

from tidemill.cost.bill import Usage, lines, total
from tidemill.cost.job_usage import of_one_job, with_log_storage
from tidemill.cost.profile import Profile, ProfileError
from tidemill.dynamodb.payloads import LARGEST_INLINE_BYTES, LARGEST_ITEM_BYTES

SMALL = Profile()


def used(**changes: Any) -> Usage:
    return of_one_job(replace(SMALL, **changes))


def dollars(usage: Usage) -> float:
    return total(lines(with_log_storage(usage, 30)))


def test_a_small_job_takes_three_write_units_and_one_for_the_listing() -> None:
    assert used(listing=False).write_units == 3
    assert used().write_units == 4
    assert used().read_units == 0


def test_a_payload_outside_of_the_document_is_written_deleted_and_read() -> None:
    apart = used(payload_bytes=LARGEST_INLINE_BYTES + 1)
    in_file = used(payload_bytes=LARGEST_ITEM_BYTES + 1)

    assert (apart.write_units, apart.read_units, apart.file_writes) == (4 + 2, 1, 0)
    assert (in_file.write_units, in_file.read_units, in_file.file_writes, in_file.file_reads) == (4, 0, 1, 1)


def test_each_further_run_reads_the_payload_and_sends_a_message_again() -> None:
    once, twice = (used(payload_bytes=2000, attempts=attempts) for attempts in (1, 2))

    assert twice.read_units == 2 * once.read_units
    assert twice.fair_requests == pytest.approx(2 * once.fair_requests)
    assert twice.write_units == once.write_units + 4


def test_the_average_of_attempts_is_the_average_of_the_cost() -> None:
    one, two, average = (dollars(used(attempts=attempts)) for attempts in (1, 2, 1.25))

    assert average == pytest.approx(0.75 * one + 0.25 * two)


def test_jobs_of_one_request_share_it() -> None:
    assert used(per_request=100).api_requests == pytest.approx(0.01)
    assert used(per_request=100, payload_bytes=10_000).api_requests == pytest.approx(0.02), "of 512 KB each"
    assert used(per_request=0).api_requests == 0


def test_jobs_that_travel_alone_cost_ten_times_as_many_requests_of_the_queue() -> None:
    assert used(batch=1).fair_requests == pytest.approx(10 * used(batch=10).fair_requests)


def test_the_first_messages_of_a_request_are_sent_ten_at_a_time() -> None:
    for per_request, sends in ((1, 1), (10, 0.1), (20, 0.1), (0, 0)):
        plain, hinted = (used(per_request=per_request, first_message=first) for first in (False, True))
        assert hinted.fair_requests - plain.fair_requests == pytest.approx(sends)


def test_grouped_commit_reads_each_document_once_and_takes_less_time() -> None:
    plain, grouped = (used(attempts=1.5, grouped=grouped) for grouped in (False, True))

    assert grouped.read_units - plain.read_units == 1
    assert grouped.write_units == plain.write_units
    assert grouped.gigabyte_seconds < plain.gigabyte_seconds


def test_handlers_of_a_batch_overlap() -> None:
    waiting = used(handler_ms=1000).gigabyte_seconds - used().gigabyte_seconds

    assert waiting == pytest.approx(1.0 * 512 / 1024 / 10)


@pytest.mark.parametrize(
    "dearer",
    [
        {"group": True},
        {"limit": True},
        {"archive": True},
        {"first_message": True},
        {"attempts": 1.1},
        {"result_bytes": 5000},
        {"retention_days": 60.0},
        {"payload_bytes": 5000},
        {"batch": 1},
        {"handler_ms": 100.0},
    ],
    ids=str,
)
def test_it_costs_more_than_a_small_job(dearer: dict[str, Any]) -> None:
    assert dollars(used(**dearer)) > dollars(used())


@pytest.mark.parametrize(
    "cheaper",
    [{"listing": False}, {"per_request": 0}, {"log_sample_rate": 0.1}, {"point_in_time_recovery": False}],
    ids=str,
)
def test_it_costs_less_than_a_small_job(cheaper: dict[str, Any]) -> None:
    assert dollars(used(**cheaper)) < dollars(used())


def test_a_member_out_of_its_range_is_refused_with_the_range() -> None:
    with pytest.raises(ProfileError, match=r"attempts 0\.5 must be from 1 to 25"):
        Profile(attempts=0.5)
