"""A sample counts the waiting jobs of one page, at the price of one page."""

from collections import Counter
from typing import Any

import pytest

from tests.support.builders import TENANT
from tidemill.domain.states import State
from tidemill.dynamodb.passes import job_sample
from tidemill.dynamodb.passes.job_sample import Sample


class Client:
    """Answers one scan with the items of these jobs."""

    def __init__(self, *jobs: tuple[str, str], last: bool) -> None:
        self._items = [
            {"pk": {"S": f"{tenant}#{number}"}, "type": {"S": name}} for number, (tenant, name) in enumerate(jobs)
        ]
        self._last = {} if last else {"LastEvaluatedKey": {"pk": {"S": "key"}}}
        self.requests: list[dict[str, Any]] = []

    def scan(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        return {"Items": self._items, "ScannedCount": 700, **self._last}


@pytest.mark.parametrize("whole", [True, False])
def test_a_sample_says_whose_jobs_wait_and_of_which_type(whole: bool) -> None:
    client: Any = Client((TENANT, "mail"), (TENANT, "sms"), ("another", "mail"), last=whole)

    sample = job_sample.read(client, table="jobs")

    assert sample == Sample(
        items=700, whole=whole, types=Counter(mail=2, sms=1), tenants=Counter({TENANT: 2, "another": 1})
    )
    assert sample.jobs == 3


def test_it_reads_one_page_of_the_jobs_that_have_work_to_do() -> None:
    client: Any = Client(last=True)

    job_sample.read(client, table="jobs")

    (request,) = client.requests
    assert (request["TableName"], request["Limit"]) == ("jobs", 1000)
    values = {value["S"] for value in request["ExpressionAttributeValues"].values()}
    assert values == {State.QUEUED, State.RETRYING, State.WAITING, State.PARKED, "tidemill.canary"}
    assert request["FilterExpression"] == ("#state IN (:queued, :retrying, :waiting, :parked) AND #type <> :canary")
