"""The scan for jobs: what each call asks for, and what becomes of its answer."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.builders import TENANT, a_job
from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.application.ports import UnreadableItem
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.passes.job_scan import DynamoJobScan

MOST = [f"t{number}" for number in range(100)]
ONLY_JOBS = "attribute_exists(#state)"


class Client:
    """Answers each scan with these items."""

    def __init__(self, *items: Any, last: str | None = None) -> None:
        self.answer: dict[str, Any] = {
            "Items": items,
            "ScannedCount": 7,
            "ConsumedCapacity": {"CapacityUnits": 1.5},
            **({} if last is None else {"LastEvaluatedKey": {"pk": {"S": last}}}),
        }
        self.requests: list[Any] = []

    def scan(self, **request: Any) -> Any:
        self.requests.append(request)
        return self.answer


def request_for(wanted: JobFilter, after: str | None = None) -> Any:
    client: Any = Client()
    DynamoJobScan(client, table="jobs").page(wanted, after=after)
    (request,) = client.requests
    return request


def test_a_scan_for_any_job_reads_jobs_alone_and_says_what_it_costs() -> None:
    assert request_for(ANY_JOB) == {
        "TableName": "jobs",
        "Limit": 1000,
        "ReturnConsumedCapacity": "TOTAL",
        "FilterExpression": ONLY_JOBS,
        "ExpressionAttributeNames": {"#state": "state"},
    }
    assert request_for(ANY_JOB, "key")["ExclusiveStartKey"] == {"pk": {"S": "key"}}


def test_the_filter_names_the_states_the_types_and_the_tag() -> None:
    request = request_for(JobFilter(states=[State.DEAD], types=["mail", "sms"], tag="vip"))

    assert request["FilterExpression"] == (
        f"{ONLY_JOBS} AND #state IN (:state0) AND #type IN (:type0, :type1) AND contains(#tags, :tag)"
    )
    assert request["ExpressionAttributeNames"] == {"#state": "state", "#type": "type", "#tags": "tags"}
    assert request["ExpressionAttributeValues"] == {
        ":state0": {"S": "dead"},
        ":type0": {"S": "mail"},
        ":type1": {"S": "sms"},
        ":tag": {"S": "vip"},
    }


@pytest.mark.parametrize(("types", "named"), [(MOST, 100), ([*MOST, "one more"], 0)])
def test_more_types_than_dynamodb_takes_are_left_to_the_caller(types: Sequence[str], named: int) -> None:
    request = request_for(JobFilter(types=types))

    assert len(request.get("ExpressionAttributeValues", {})) == named
    assert ("#type" in request["FilterExpression"]) is ("#type" in request["ExpressionAttributeNames"]) is bool(named)


@pytest.mark.parametrize("last", [None, "key"])
def test_a_page_has_the_jobs_the_unreadable_items_and_its_price(last: str | None) -> None:
    job = a_job()
    broken = encode(a_job()) | {"schema": {"N": "99"}}
    client: Any = Client(encode(job), broken, last=last)

    page = DynamoJobScan(client, table="jobs").page(ANY_JOB, after=None)

    assert [found.id for found in page.found if isinstance(found, Job)] == [job.id]
    (damaged,) = [found for found in page.found if isinstance(found, UnreadableItem)]
    assert damaged.key == broken["pk"]["S"]
    assert "schema 99" in str(damaged.error)
    assert (page.cursor, page.items, page.read_units) == (last, 7, 1.5)


def test_a_scan_can_continue_behind_a_job() -> None:
    job = a_job(tenant=TENANT)
    assert DynamoJobScan.cursor_after(job) == encode(job)["pk"]["S"]
