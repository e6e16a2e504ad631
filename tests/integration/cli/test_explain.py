"""`explain`: the reason, the history, and the tenant that it finds by itself. The simulator checks the reasons."""

import json

import pytest

from tests.integration.cli.called_functions import deploy
from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import TENANT, a_job, brought_to
from tests.support.parked_jobs import enter, park, park_only
from tidemill.aws import clients
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.names import SCHEDULE_TENANT
from tidemill.system import clock


def _ready(cloud: Cloud, **changes: object) -> str:
    now = clock.now()
    job = cloud.store.insert_if_absent(a_job(**{"created_at": now, "due": now, **changes}))
    return job.id


def test_a_lost_message_is_named_with_what_to_do(cloud: Cloud) -> None:
    result = run("explain", _ready(cloud))
    assert result.exit_code == 0, result.stderr
    first, why, remedy, *rest = result.stdout.splitlines()
    assert first.endswith("queued: its lane has no message")
    assert "the lane default has no message: publish has not sent it yet, or it was lost." in why
    assert "`tidemill reconcile --overdue-by 1`" in remedy
    assert rest[0] == "history"
    assert f"  tenant {TENANT}" in rest
    assert rest[-1].endswith("submitted to the lane default")


def test_a_disabled_publisher_is_the_reason_while_the_lane_is_empty(cloud: Cloud) -> None:
    cloud.server.stacks[0] = deploy(cloud.server.stacks[0], cloud.resources)
    cloud.resources.mappings["uuid-publish"]["State"] = "Disabled"
    assert "publish is not called" in run("explain", _ready(cloud)).stdout


def test_a_disabled_worker_is_the_reason_while_messages_wait(cloud: Cloud) -> None:
    cloud.server.stacks[0] = deploy(cloud.server.stacks[0], cloud.resources)
    clients.sqs().send_message(QueueUrl=cloud.queue, MessageBody="x")
    job_id = _ready(cloud)
    assert "it waits for a worker of its lane" in run("explain", job_id).stdout
    cloud.resources.mappings["uuid-work"]["State"] = "Disabled"
    assert "the workers of its lane are not called" in run("explain", job_id).stdout


def test_without_rights_on_mappings_the_rest_is_explained(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise clients.AWS_ERRORS[1]({"Error": {"Code": "AccessDenied", "Message": "denied"}}, "GetTemplate")

    monkeypatch.setattr("tidemill.operator.drift.expected_state.read", denied)
    result = run("explain", _ready(cloud))
    assert result.exit_code == 0
    assert "its lane has no message" in result.stdout
    assert "The event source mappings and schedules were not read" in result.stderr


def test_a_parked_job_names_its_limit_and_its_place(cloud: Cloud) -> None:
    limits = DynamoLimits(clients.dynamodb(), table=cloud.table.name)
    enter(limits, a_job())
    first, second = park(cloud.store, limits), park(cloud.store, limits, created_at=a_job().created_at.replace(hour=9))
    assert "The limit test.job#a has its only slot in use. It is the first of its line." in (
        run("explain", first.id, "--tenant", TENANT).stdout
    )
    assert "1 job of its line is before it." in run("explain", second.id, "--tenant", TENANT).stdout


def test_a_job_above_the_cap_of_its_tenant_names_the_cap(cloud: Cloud) -> None:
    limits, line = DynamoLimits(clients.dynamodb(), table=cloud.table.name), Line.for_cap("a:flooder", "bulk")
    enter(limits, a_job(), line=line)
    parked = a_job(tenant="a:flooder")
    enter(limits, parked, line=line)
    park_only(cloud.store, parked, line)

    assert "cap of tenant a:flooder in lane bulk  1" in run("status").stdout.splitlines()
    found = run("explain", parked.id, "--tenant", parked.tenant).stdout
    assert "The cap of tenant a:flooder in lane bulk has room." in found, "the cap was removed"


def test_a_head_whose_key_another_job_has_taken_is_not_named(cloud: Cloud) -> None:
    """The head's job expired, and a new job has its idempotency key."""
    head, waiting = (_ready(cloud, group="g") for _ in range(2))
    assert "another job of its group is before it" in run("explain", waiting).stdout
    cloud.table.put(a_job(id=head))
    assert "its group is about to move on" in run("explain", waiting).stdout


def test_json_has_reason_and_history(cloud: Cloud) -> None:
    job = cloud.dead_job(group="g", blocks=True)
    found = json.loads(run("explain", job.id, "--json").stdout)
    assert (found["reason"], found["state"], found["until"]) == ("dead", "dead", None)
    assert "It blocks its group g until it is redriven or cancelled." in found["why"][0]
    history = [event["what"] for event in found["history"]]
    assert [what.partition(",")[0] for what in history[:2]] == [
        "submitted to the lane default",
        "attempt 1 began 0s after it was ready",
    ]
    assert len(history) == 3
    assert history[2].startswith("attempt 1 failed, for good: ValueError: no such thing; it died: ")


def test_the_tenant_is_found_in_the_index_and_in_the_table(cloud: Cloud) -> None:
    dead = cloud.dead_job(tenant="a:dead")
    scheduled = brought_to(cloud.store, State.SCHEDULED, tenant="a:scheduled")
    periodic = _ready(cloud, tenant=SCHEDULE_TENANT)
    queued = _ready(cloud, tenant="a:queued")
    for job_id, tenant in (
        (dead.id, "a:dead"),
        (scheduled.id, "a:scheduled"),
        (periodic, SCHEDULE_TENANT),
        (queued, "a:queued"),
    ):
        assert json.loads(run("explain", job_id, "--json").stdout)["tenant"] == tenant


def test_an_id_of_two_tenants_needs_the_tenant(cloud: Cloud) -> None:
    for tenant in ("a:one", "a:two"):
        cloud.store.insert_if_absent(a_job(id="job-of-two", tenant=tenant))
    result = run("explain", "job-of-two")
    assert result.exit_code == 1
    assert "several tenants have a job job-of-two: a:one, a:two" in result.stderr
    assert run("explain", "job-of-two", "--tenant", "a:two").exit_code == 0


def test_an_unknown_id_is_refused_with_a_remedy(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no job has the ID nope" in run("explain", "nope").stderr
    assert "tenant a:b has no job nope" in run("explain", "nope", "--tenant", "a:b").stderr
    for _ in range(3):
        cloud.dead_job()
    monkeypatch.setattr("tidemill.operator.explain.find_job._MOST_ENTRIES", 0)
    monkeypatch.setattr("tidemill.operator.explain.find_job._MOST_PAGES", 1)
    assert run("explain", "nope").exit_code == 1


def test_control_characters_of_a_job_are_visible(cloud: Cloud) -> None:
    job_id = _ready(cloud, type="a\x1b[2Jb")
    assert "a\\x1b[2Jb" in run("explain", job_id).stdout
