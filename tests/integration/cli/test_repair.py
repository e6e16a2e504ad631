"""`tidemill repair`: what differs from the template is shown and restored, and nothing else is touched."""

import json
import re
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.cli.compared_stack import DRIFTS, adopt, deploy_every_kind, disable_stream, latest_stream
from tests.integration.cli.conftest import Cloud, run
from tests.integration.cli.stored_resources import StoredAlarms, StoredQueues
from tests.support.job_tables import REGION
from tidemill.aws import clients
from tidemill.operator.drift import expected_state
from tidemill.operator.drift.drift import drifted
from tidemill.operator.drift.expected_resource import Kind

STACK = "dev-Pipeline"
NOTHING_DIFFERS = "9 of 9 resources are as the template says."


@pytest.fixture
def deployed(cloud: Cloud, environment: pytest.MonkeyPatch) -> Cloud:
    # The variable is set as in a function, for the comparison that reconcile makes.
    environment.setenv("AWS_DEFAULT_REGION", REGION)
    alarms, queues = StoredAlarms(), StoredQueues()
    environment.setattr(clients, "cloudwatch", lambda: alarms)
    environment.setattr(clients, "sqs", lambda: queues)
    deploy_every_kind(cloud)
    return cloud


@pytest.mark.usefixtures("deployed")
def test_every_setting_that_is_compared_has_a_drift() -> None:
    states = expected_state.read(clients.cloudformation(), STACK, {})
    assert {(each.kind, name) for each in states for name in each.settings} == set(DRIFTS)


@pytest.mark.usefixtures("deployed")
def test_nothing_differs_right_after_a_deployment() -> None:
    assert drifted(STACK) == {}
    result = run("repair", "--yes")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", NOTHING_DIFFERS + "\n")
    assert run("audit", "--json").stdout == ""


@pytest.mark.parametrize(("kind", "setting"), DRIFTS)
def test_each_difference_is_reported_by_reconcile_planned_and_restored(
    deployed: Cloud, kind: Kind, setting: str
) -> None:
    DRIFTS[kind, setting](deployed)

    ((resource, difference),) = drifted(STACK).items()
    assert resource.startswith(kind)
    assert difference.startswith(f"{setting} is ")
    planned = json.loads(run("repair", "--dry-run", "--json").stdout)
    assert [(each["kind"], each["setting"]) for each in planned["drifted"]] == [(kind, setting)]
    assert drifted(STACK)

    repaired = run("repair", "--yes", "--reason", "an incident", "--json")
    assert repaired.exit_code == 0, repaired.stderr
    assert json.loads(repaired.stdout)["restored"] >= 1
    assert drifted(STACK) == {}
    entry = json.loads(run("audit", "--json", "--limit", "1").stdout)
    assert (entry["command"], entry["reason"], entry["outcome"]) == ("repair", "an incident", "done")
    assert entry["counts"]["restored"] >= 1


def test_the_plan_says_what_is_and_what_should_be_and_changes_nothing(deployed: Cloud) -> None:
    deployed.resources.schedules["default", "wake-1"]["State"] = "DISABLED"
    result = run("repair", "--dry-run")
    titles, row = result.stdout.splitlines()
    assert re.split(" {2,}", titles) == ["KIND", "RESOURCE", "SETTING", "IS", "SHOULD BE"]
    assert re.split(" {2,}", row) == ["schedule", "wake part 0", "State", "DISABLED", "ENABLED"]
    assert result.stderr == "8 of 9 resources are as the template says.\n"
    assert drifted(STACK)


@pytest.mark.parametrize(("kind", "setting"), [each for each in DRIFTS if each[0] is Kind.TABLE])
def test_each_difference_of_an_adopted_table_is_restored(deployed: Cloud, kind: Kind, setting: str) -> None:
    adopt(deployed)
    assert drifted(STACK) == {}
    DRIFTS[kind, setting](deployed)

    ((resource, difference),) = drifted(STACK).items()
    assert resource == "table TidemillAdoptedTable"
    assert difference.startswith(f"{setting} is ")
    assert run("repair", "--yes").exit_code == 0
    assert drifted(STACK) == {}


@pytest.mark.parametrize("adopted", [False, True])
def test_a_lost_stream_gets_a_second_mapping_that_a_repeat_does_not_double(deployed: Cloud, *, adopted: bool) -> None:
    if adopted:
        adopt(deployed)
    disable_stream(deployed)
    result = run("repair", "--yes")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "2 restored, 0 failed"
    assert "run `tidemill reconcile --overdue-by 1`" in result.stderr
    publish = [each for each in deployed.resources.mappings.values() if each["FunctionArn"] == "arn:publish"]
    old, new = publish
    assert new["EventSourceArn"] == latest_stream(deployed)
    assert new["EventSourceArn"] != old["EventSourceArn"]
    assert new["StartingPosition"] == "TRIM_HORIZON"
    assert {name: new[name] for name in ("State", "BatchSize", "FilterCriteria")} == {
        name: old[name] for name in ("State", "BatchSize", "FilterCriteria")
    }
    # From now on the second one is compared.
    new["State"] = "Disabled"
    assert run("repair", "--yes").exit_code == 0
    assert (new["State"], len(deployed.resources.mappings)) == ("Enabled", 3)


def test_a_filter_that_the_template_does_not_have_is_removed(deployed: Cloud) -> None:
    """Lambda deletes the messages that a filter does not match, so nothing else shows it."""
    mapping = deployed.resources.mappings["uuid-work"]
    assert "FilterCriteria" not in mapping
    mapping["FilterCriteria"] = {"Filters": [{"Pattern": '{"body":{"tenant":["canary"]}}'}]}

    assert list(drifted(STACK)) == ["event source mapping WorkMapping"]
    assert "Restored FilterCriteria of the event source mapping work." in run("repair", "--yes").stderr
    assert mapping["FilterCriteria"] == {}
    assert drifted(STACK) == {}


def test_a_failure_is_reported_and_the_others_go_on(deployed: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed.resources.mappings["uuid-publish"]["State"] = "Disabled"
    deployed.resources.schedules["default", "wake-1"]["State"] = "DISABLED"

    def denied(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no right"}}, "Update")

    with monkeypatch.context() as patch:
        patch.setattr(deployed.resources, "update_event_source_mapping", denied, raising=False)
        result = run("repair", "--yes")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "1 restored, 1 failed"
    assert "Not restored: event source mapping publish: An error occurred (AccessDeniedException)" in result.stderr
    assert "Error: 1 setting not restored, 0 resources not compared, 0 resources to deploy" in result.stderr
    assert drifted(STACK) == {"event source mapping PublishMapping": "Enabled is false, and the template says true"}

    assert run("repair", "--yes").exit_code == 0
    assert drifted(STACK) == {}


def test_a_deleted_resource_needs_a_deployment_and_is_not_made(deployed: Cloud) -> None:
    del deployed.resources.mappings["uuid-publish"]
    result = run("repair", "--yes")
    assert result.exit_code == 1
    assert "The event source mapping publish does not exist. It was deleted outside of CloudFormation" in result.stderr
    assert "0 settings not restored, 0 resources not compared, 1 resource to deploy" in result.stderr
    assert list(deployed.resources.mappings) == ["uuid-work"]


def test_what_cannot_be_compared_fails_the_command(deployed: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no right"}}, "GetSchedule")

    monkeypatch.setattr(deployed.resources, "get_schedule", denied, raising=False)
    result = run("repair", "--dry-run", "--json")
    assert result.exit_code == 1
    (named,) = json.loads(result.stdout)["not_compared"]
    assert named == "schedule wake part 0"
    assert "Not compared: schedule wake part 0: An error occurred" in result.stderr


@pytest.mark.usefixtures("interactive")
def test_without_a_yes_nothing_is_changed(deployed: Cloud) -> None:
    deployed.resources.mappings["uuid-publish"]["State"] = "Disabled"
    assert "Nothing was changed." in run("repair", typed="n\n").stderr
    assert drifted(STACK)
    assert run("audit", "--json").stdout == ""


@pytest.mark.usefixtures("interactive")
def test_the_plan_is_shown_before_the_question_also_with_json(deployed: Cloud) -> None:
    deployed.resources.mappings["uuid-publish"]["State"] = "Disabled"

    result = run("repair", "--json", typed="y\n")

    plan, question = result.stderr.index("SHOULD BE"), result.stderr.index("Restore 1 resource?")
    assert plan < question
    assert json.loads(result.stdout)["restored"]


def test_without_a_terminal_it_asks_for_yes_or_a_dry_run(deployed: Cloud) -> None:
    deployed.resources.mappings["uuid-publish"]["State"] = "Disabled"
    result = run("repair")
    assert result.exit_code == 2
    assert "pass --yes to confirm, or --dry-run to see the plan" in result.stderr
