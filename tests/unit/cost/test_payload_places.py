"""Where a payload costs least."""

from dataclasses import replace

from tidemill.cost.bill import lines, total
from tidemill.cost.job_usage import of_one_job
from tidemill.cost.payload_places import break_even_bytes
from tidemill.cost.profile import Profile
from tidemill.dynamodb.payloads import LARGEST_INLINE_BYTES, LARGEST_ITEM_BYTES


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


def test_a_payload_in_the_document_is_cheapest_while_the_document_stays_in_its_write_unit() -> None:
    inline = Profile(payload_bytes=LARGEST_INLINE_BYTES)

    assert dollars(inline) < dollars(replace(inline, payload_bytes=LARGEST_INLINE_BYTES + 1))
