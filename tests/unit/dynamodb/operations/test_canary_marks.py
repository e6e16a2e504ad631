"""What the item of each lane says of its last canary."""

from typing import Any

import pytest

from tests.support.builders import NOW
from tidemill.domain.errors import StoreUnavailableError
from tidemill.dynamodb.operations.canary_marks import submitted
from tidemill.names import Lane


class Client:
    """Answers one BatchGetItem with these items, and leaves those keys out."""

    def __init__(self, *items: Any, left: Any = None) -> None:
        self.items = items
        self.left = left

    def batch_get_item(self, *, RequestItems: Any) -> Any:  # noqa: N803 - as boto3 has it
        assert RequestItems == {"jobs": {"Keys": [{"pk": {"S": f"!canary#{lane}"}} for lane in Lane]}}
        return {
            "Responses": {"jobs": list(self.items)} if self.items else {},
            **({} if self.left is None else {"UnprocessedKeys": self.left}),
        }


def mark(lane: Lane) -> Any:
    return {"pk": {"S": f"!canary#{lane}"}, "submitted_at": {"S": NOW.isoformat()}}


@pytest.mark.parametrize("left", [None, {}])
def test_each_lane_with_a_mark_has_its_time(left: Any) -> None:
    client: Any = Client(mark(Lane.BULK), mark(Lane.CRITICAL), left=left)
    empty: Any = Client(left=left)

    assert submitted(client, table="jobs") == {Lane.BULK: NOW, Lane.CRITICAL: NOW}
    assert submitted(empty, table="jobs") == {}


def test_a_lane_whose_item_was_throttled_is_not_taken_for_one_without_a_canary() -> None:
    client: Any = Client(mark(Lane.BULK), left={"jobs": {"Keys": [{"pk": {"S": "!canary#critical"}}]}})

    with pytest.raises(StoreUnavailableError, match="throttled"):
        submitted(client, table="jobs")
