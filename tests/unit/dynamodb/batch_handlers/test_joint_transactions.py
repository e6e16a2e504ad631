"""How many jobs of a batch handler are settled in one transaction."""

from typing import Any

import pytest

from tests.support.builders import LEASE, NOW, a_job
from tidemill.application.ports import Settling
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.states import State
from tidemill.dynamodb.batch_handlers.joint_settle import JointSettle


class Client:
    """Grants each transaction, and notes how many entries it has."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def transact_write_items(self, **request: Any) -> None:
        self.sizes.append(len(request["TransactItems"]))


def a_settling(number: int, *names: str) -> Settling:
    job = a_job(state=State.RUNNING, owner=f"t{number}", attempt=1, due=NOW + LEASE)
    writes = [{"Put": {"TableName": "effects", "Item": {"pk": {"S": name}}}} for name in names]
    return Settling(job, Settlement(state=State.SUCCEEDED, writes=writes), NOW)


@pytest.mark.parametrize(
    ("count", "effects", "sizes", "alone"),
    [
        (0, 0, [], 0),
        (1, 0, [], 1),
        (2, 0, [2], 0),
        # DynamoDB takes a hundred entries.
        (100, 0, [100], 0),
        (101, 0, [100], 1),
        (102, 0, [100, 2], 0),
        (50, 1, [100], 0),
        (51, 1, [100], 1),
        (34, 2, [99], 1),
    ],
)
def test_as_many_jobs_as_fit_are_settled_together(count: int, effects: int, sizes: list[int], alone: int) -> None:
    client, by_itself = Client(), list[Settling]()
    anything: Any = client
    settle = JointSettle(anything, table="jobs", request=lambda _each: {}, alone=by_itself.append)
    settlings = [a_settling(each, *(f"{each}/{name}" for name in range(effects))) for each in range(count)]

    assert settle.settle(settlings) == [None] * count
    assert (client.sizes, len(by_itself)) == (sizes, alone)
