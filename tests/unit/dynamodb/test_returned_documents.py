"""Which writes have their document returned: it costs CPU time for each attribute, so only those that read it."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, reference_to
from tidemill.application.ports import JobStore
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.job_store import DynamoJobStore

RUNNING = a_job(state=State.RUNNING, attempt=1, owner="a", claimed_at=NOW, due=NOW + 30 * SECOND)


class Client:
    """Grants each update, and notes what it returns."""

    def __init__(self) -> None:
        self.returned: list[str] = []

    def update_item(self, **request: Any) -> dict[str, Any]:
        self.returned.append(request.get("ReturnValues", "NONE"))
        return {"Attributes": encode(RUNNING)} if self.returned[-1] == "ALL_NEW" else {}


def store_over(client: Any) -> JobStore:
    return DynamoJobStore(client, table="jobs", retention=timedelta(days=30))


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.RETRYING])
def test_a_settle_returns_no_document(state: State) -> None:
    client = Client()

    assert store_over(client).settle(RUNNING, Settlement(state=state, due=NOW), now=NOW) == ()
    assert client.returned == ["NONE"]


def test_a_claim_returns_its_document() -> None:
    client = Client()

    claimed = store_over(client).claim(reference_to(RUNNING), token="a", now=NOW, lease_end=NOW + 30 * SECOND)

    assert (claimed, client.returned) == (RUNNING, ["ALL_NEW"])
