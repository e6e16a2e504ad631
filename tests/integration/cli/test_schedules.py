"""`schedules`: list, run, disable and enable."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import a_job
from tidemill.application.waiting.periodic import REQUESTED_TAG
from tidemill.cli.formatting import timestamp
from tidemill.names import LIVE_ALIAS, SCHEDULE_TENANT, Lane
from tidemill.system import clock

HOURLY, NIGHTLY = "reports.hourly", "reports.nightly"


class Tick:
    """Stands in for the client of Lambda: the function `tick`."""

    def __init__(self, answer: Any, **changes: str) -> None:
        self.answer = answer
        self.changes = changes
        self.events: list[Mapping[str, Any]] = []

    def invoke(self, *, FunctionName: str, Qualifier: str, Payload: str) -> Mapping[str, Any]:  # noqa: N803 - as in the API
        assert (FunctionName, Qualifier) == ("f-tick", LIVE_ALIAS)
        self.events.append(json.loads(Payload))
        return {"Payload": BytesIO(json.dumps(self.answer).encode()), **self.changes}


@pytest.fixture(autouse=True)
def _periodic(cloud: Cloud) -> None:
    stack = cloud.server.stacks[0]
    schedules = json.dumps({HOURLY: "rate(1 hour)", NIGHTLY: "cron(0 3 * * ? *)"})
    outputs = {**stack.outputs, "Schedules": schedules, "Functions": '{"tick": "f-tick"}'}
    cloud.server.stacks[0] = replace(stack, outputs=outputs)


def listed() -> dict[str, Any]:
    result = run("schedules", "list", "--json")
    assert result.exit_code == 0, result.stderr
    return {one["type"]: one for one in map(json.loads, result.stdout.splitlines())}


def test_each_schedule_has_its_times_and_its_last_job(cloud: Cloud) -> None:
    began = clock.now() - timedelta(minutes=90)
    store = cloud.listed().store
    last = store.insert_if_absent(a_job(tenant=SCHEDULE_TENANT, type=HOURLY, created_at=began, due=began))

    shown = listed()

    assert list(shown) == [HOURLY, NIGHTLY]
    assert (shown[HOURLY]["last"]["id"], shown[HOURLY]["last"]["state"]) == (last.id, "queued")
    assert shown[HOURLY]["next"] == f"{began + timedelta(hours=2):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
    assert shown[NIGHTLY]["next"].endswith("T03:00:00.000Z")
    assert (shown[NIGHTLY]["last"], shown[NIGHTLY]["enabled"], shown[NIGHTLY]["time_zone"]) == (None, True, "UTC")
    table = run("schedules", "list").stdout.splitlines()
    assert table[1].split()[:4] == [HOURLY, "rate(1", "hour)", "enabled"]


def test_a_schedule_that_cannot_be_read_or_has_ended_does_not_hide_the_others(cloud: Cloud) -> None:
    """An earlier version deployed them."""
    stack = cloud.server.stacks[0]
    schedules = {"a.old": "cron(0 3 ? * 0 *)", "b.past": "cron(0 3 1 1 ? 2020)", NIGHTLY: "cron(0 3 * * ? *)"}
    cloud.server.stacks[0] = replace(stack, outputs={**stack.outputs, "Schedules": json.dumps(schedules)})

    shown = listed()

    assert [(each["next"] is None, each["no_next"]) for each in shown.values()] == [
        (True, "invalid"),
        (True, "never"),
        (False, None),
    ]
    table = run("schedules", "list")
    assert [line.split()[8] for line in table.stdout.splitlines()[1:3]] == ["invalid", "never"]
    assert "'cron(0 3 ? * 0 *)': the field day of week is '0', and it takes 1 to 7" in table.stderr.replace("\n", " ")


def test_the_next_run_of_a_rate_does_not_count_from_a_run_that_an_operator_asked_for(cloud: Cloud) -> None:
    began = clock.now() - timedelta(minutes=50)
    asked = began + timedelta(minutes=30)
    store = cloud.listed().store
    for at, tags in ((began, ()), (asked, (REQUESTED_TAG,))):
        last = store.insert_if_absent(a_job(tenant=SCHEDULE_TENANT, type=HOURLY, created_at=at, due=at, tags=tags))

    shown = listed()[HOURLY]

    assert shown["last"]["id"] == last.id
    assert shown["next"] == timestamp(began + timedelta(hours=1))


def test_a_schedule_is_disabled_and_enabled_with_its_record() -> None:
    result = run("schedules", "disable", NIGHTLY, "--reason", "INC-7", "--until", "2099-01-31T12:00Z", "--yes")
    assert (result.exit_code, result.stdout) == (0, f"disabled {NIGHTLY}\n")

    shown = listed()[NIGHTLY]
    assert (shown["enabled"], shown["reason"], shown["until"]) == (False, "INC-7", "2099-01-31T12:00:00.000Z")
    assert shown["disabled_by"].startswith("arn:aws:sts:")
    assert "disabled by arn:" in run("schedules", "list").stdout
    assert f"PAUSED: schedule={NIGHTLY} by arn:" in run("status").stdout

    assert run("schedules", "enable", NIGHTLY, "--yes").stdout == f"enabled {NIGHTLY}\n"
    assert listed()[NIGHTLY]["enabled"] is True
    again = run("schedules", "enable", NIGHTLY, "--yes")
    assert again.exit_code == 1
    assert f"the schedule of {NIGHTLY} is not disabled" in again.stderr


@pytest.mark.parametrize("target", [f"type={HOURLY}", "lane=bulk", "tenant=schedule", f"schedule={HOURLY}"])
def test_a_paused_schedule_has_no_next_run(cloud: Cloud, target: str) -> None:
    began = clock.now() - timedelta(minutes=90)
    store = cloud.listed().store
    for type_, lane in ((HOURLY, Lane.BULK), (NIGHTLY, Lane.DEFAULT)):
        job = a_job(tenant=SCHEDULE_TENANT, type=type_, lane=lane, created_at=began, due=began)
        store.insert_if_absent(job)
    # The pause of another schedule, and one of a tenant that has none.
    for other in ("schedule=reports.weekly", "tenant=tenant-a", "lane=critical"):
        assert run("pause", other, "--yes").exit_code == 0
    assert all(each["enabled"] and each["next"] and each["stopped_by"] is None for each in listed().values())

    paused = run("pause", target, "--yes", "--reason", "INC-7")

    assert paused.exit_code == 0, paused.stderr
    stopped = {type_: each["stopped_by"] for type_, each in listed().items() if not each["enabled"]}
    assert stopped == dict.fromkeys((HOURLY, NIGHTLY) if target.startswith("tenant") else (HOURLY,), target)
    assert [each["next"] for each in listed().values() if not each["enabled"]] == [None] * len(stopped)
    state = "disabled by" if target.startswith("schedule") else "paused by"
    assert f"{state} {listed()[HOURLY]['disabled_by']}" in run("schedules", "list").stdout


def test_a_schedule_that_is_disabled_says_so_even_while_its_type_is_paused() -> None:
    assert run("pause", f"type={NIGHTLY}", "--yes").exit_code == 0
    assert run("schedules", "disable", NIGHTLY, "--yes").exit_code == 0
    assert listed()[NIGHTLY]["stopped_by"] == f"schedule={NIGHTLY}"


def test_a_run_is_submitted_by_tick_and_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    tick = Tick({"id": "job-1", "state": "queued"})
    monkeypatch.setattr("tidemill.operator.deployments.function_call.invocations", lambda: tick)

    result = run("schedules", "run", NIGHTLY, "--reason", "INC-7", "--yes")

    assert (result.exit_code, result.stdout) == (0, "job-1\n")
    (event,) = tick.events
    assert (event["type"], event["requested"]) == (NIGHTLY, "true")
    (entry,) = map(json.loads, run("audit", "--json").stdout.splitlines())
    assert (entry["command"], entry["reason"], entry["counts"]) == ("schedules run", "INC-7", {"submitted": 1})
    assert json.loads(run("schedules", "run", NIGHTLY, "--yes", "--json").stdout) == {"id": "job-1", "state": "queued"}


def test_the_error_of_tick_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Tick({"errorMessage": "unknown job type"}, FunctionError="Unhandled")
    monkeypatch.setattr("tidemill.operator.deployments.function_call.invocations", lambda: failed)

    result = run("schedules", "run", NIGHTLY, "--yes")

    assert result.exit_code == 1
    assert "the function tick failed: unknown job type" in " ".join(result.stderr.split())


@pytest.mark.parametrize("command", ["run", "disable"])
def test_a_type_without_a_schedule_is_refused(command: str) -> None:
    result = run("schedules", command, "mail.welcome", "--yes")

    assert result.exit_code == 1
    error = " ".join(result.stderr.split())
    assert "mail.welcome is not a periodic type" in error
    assert f"The periodic types are: {HOURLY}, {NIGHTLY}." in error


@pytest.mark.parametrize("command", ["run", "disable", "enable"])
def test_a_change_needs_a_confirmation(command: str) -> None:
    result = run("schedules", command, NIGHTLY)

    assert result.exit_code == 2
    assert "pass --yes" in result.stderr


def test_a_last_job_behind_many_of_other_types_is_found(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.dynamodb.listing.MOST_READ", 1)
    monkeypatch.setattr("tidemill.dynamodb.listing._BATCH", 1)
    store = cloud.listed().store
    began = clock.now() - timedelta(hours=2)
    last = store.insert_if_absent(a_job(tenant=SCHEDULE_TENANT, type=HOURLY, created_at=began, due=began))
    for minutes in range(1, 4):
        at = began + timedelta(minutes=minutes)
        store.insert_if_absent(a_job(tenant=SCHEDULE_TENANT, type=NIGHTLY, created_at=at, due=at))

    assert listed()[HOURLY]["last"]["id"] == last.id
