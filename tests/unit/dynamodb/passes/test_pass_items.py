"""What a run reads of a segment that another pass has saved."""

import pytest

from tests.support.builders import NOW
from tidemill.application.passes.pass_state import Segment, TablePass, first_pass
from tidemill.dynamodb.passes.pass_items import decoded_segment, put_segment


def _read_by(number: int, saved: Segment) -> Segment:
    item = put_segment(saved, version="v1")["Item"]
    present: TablePass = first_pass(NOW)
    return decoded_segment(
        item, TablePass(number=number, segments=present.segments, began_at=NOW, covered_since=NOW), 0
    )


def test_a_segment_of_its_own_pass_goes_on_at_its_cursor() -> None:
    saved = Segment(pass_number=4, number=0, cursor="key", items=9, tries=1)
    assert _read_by(4, saved) == Segment(pass_number=4, number=0, cursor="key", items=9, tries=1, version="v1")


@pytest.mark.parametrize("done", [True, False])
def test_a_segment_of_an_earlier_pass_begins_anew(done: bool) -> None:
    saved = Segment(pass_number=3, number=0, cursor="key", items=9, done=done)
    assert _read_by(4, saved) == Segment(pass_number=4, number=0, version="v1")


def test_a_slow_run_of_an_ended_pass_leaves_the_segment_to_the_later_pass() -> None:
    saved = Segment(pass_number=5, number=0, cursor="key", items=9)
    assert _read_by(4, saved).done
