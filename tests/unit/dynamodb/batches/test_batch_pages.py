"""The page of a member."""

from tidemill.domain.batches.batches import PAGES
from tidemill.dynamodb.batches.batch_pages import page_number


def test_the_members_of_a_batch_spread_over_all_pages_in_the_same_way_in_each_version() -> None:
    ids = [f"job-{number}" for number in range(1_000)]

    assert {page_number(each) for each in ids} == set(range(PAGES)) == set(range(32))
    assert [page_number(each) for each in ids[:3]] == [9, 31, 5]
