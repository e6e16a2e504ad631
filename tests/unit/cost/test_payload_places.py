"""Where a payload costs least."""

from dataclasses import replace

import pytest

from tidemill.cost.bill import lines, total
from tidemill.cost.job_usage import of_one_job
from tidemill.cost.payload_places import break_even_bytes
from tidemill.cost.profile import Profile
from tidemill.dynamodb.payloads import LARGEST_INLINE_BYTES, LARGEST_ITEM_BYTES
from tidemill.names import LARGEST_BODY_BYTES


def dollars(profile: Profile) -> float:
    return total(lines(of_one_job(profile)))


def test_an_item_is_cheaper_up_to_the_break_even_and_a_file_above_it() -> None:
    for jobs in (Profile(), Profile(retention_days=1), Profile(point_in_time_recovery=False)):
        even = break_even_bytes(jobs)
        for size, item_is_cheaper in ((even, True), (even + 200, False), (16_000, False), (1_000, True)):
            item, file = (
                dollars(replace(jobs, payload_bytes=size, payload_item_bytes=most)) for most in (LARGEST_ITEM_BYTES, 0)
            )
            assert (item <= file) is item_is_cheaper, (jobs, size)


def test_a_payload_that_is_kept_for_long_with_backups_is_cheaper_as_a_file_sooner() -> None:
    assert break_even_bytes(Profile(retention_days=90)) < break_even_bytes(Profile(retention_days=1))


def test_the_break_even_is_between_two_and_four_kilobytes() -> None:
    """The pages of cost and settings say so."""
    assert break_even_bytes(Profile()) == 2_800
    assert break_even_bytes(Profile(retention_days=1)) == 3_800


def test_the_break_even_of_compressed_payloads_is_not_bound_by_the_size_of_an_item() -> None:
    jobs = Profile(compression=20)
    even = break_even_bytes(jobs)
    assert even > LARGEST_ITEM_BYTES

    for size, item_is_cheaper in ((even, True), (even + 200, False), (LARGEST_BODY_BYTES, False)):
        item, file = (
            dollars(replace(jobs, payload_bytes=size, payload_item_bytes=most)) for most in (LARGEST_ITEM_BYTES, 0)
        )
        assert (item <= file) is item_is_cheaper, size


def test_a_payload_that_compresses_very_well_is_cheapest_in_an_item_at_any_size() -> None:
    assert break_even_bytes(Profile(compression=100)) == LARGEST_BODY_BYTES


@pytest.mark.parametrize("days", [365, 414, 3_650])
def test_each_payload_outside_of_the_document_of_a_job_that_is_kept_for_years_is_cheaper_as_a_file(days: int) -> None:
    jobs = Profile(retention_days=days)
    even = break_even_bytes(jobs)

    above = replace(jobs, payload_bytes=even + 100)
    assert dollars(replace(above, payload_item_bytes=0)) < dollars(above)
    assert (even == LARGEST_INLINE_BYTES) is (days > 413)


def test_a_payload_in_the_document_is_cheapest_while_the_document_stays_in_its_write_unit() -> None:
    inline = Profile(payload_bytes=LARGEST_INLINE_BYTES)

    assert dollars(inline) < dollars(replace(inline, payload_bytes=LARGEST_INLINE_BYTES + 1))
