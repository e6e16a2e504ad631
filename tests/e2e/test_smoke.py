"""`tidemill smoke` against the deployed app: as it is, and with parts of it broken."""

import json

from tests.e2e.conftest import Deployed, Tidemill


def _failed(tidemill: Tidemill) -> dict[str, list[str]]:
    done = tidemill("smoke", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 8, done.stderr
    failed = {each["check"]: each["faults"] for each in found if not each["ok"]}
    assert done.returncode == bool(failed), done.stderr
    return failed


def test_a_deployment_passes_and_names_what_is_broken(tidemill: Tidemill, deployed: Deployed) -> None:
    # Other tests make alarms fire.
    assert _failed(tidemill).keys() <= {"alarms"}

    scheduler, logs = deployed.app.client("scheduler"), deployed.app.client("logs")
    schedule = scheduler.get_schedule(Name=scheduler.list_schedules()["Schedules"][0]["Name"])
    names = ("Name", "ScheduleExpression", "FlexibleTimeWindow", "Target")
    same = {name: schedule[name] for name in names}
    group = json.loads(deployed.app.outputs["LogGroups"])["stats"]
    retention = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"][0]["retentionInDays"]
    scheduler.update_schedule(**same, State="DISABLED")
    logs.delete_retention_policy(logGroupName=group)
    try:
        failed = _failed(tidemill)
    finally:
        scheduler.update_schedule(**same, State="ENABLED")
        logs.put_retention_policy(logGroupName=group, retentionInDays=retention)
    assert failed.keys() - {"alarms"} == {"drift", "log groups"}
    assert "DISABLED" in str(failed["drift"])
    assert group in str(failed["log groups"])
