"""`config` over the table of a deployed Tidemill."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import a_job
from tests.support.fake_app_config import FakeAppConfig
from tidemill.application.configuration import Configurator
from tidemill.aws import clients
from tidemill.domain.breakers.breaker import Breaker, BreakerPolicy, Callers
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Wait
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.system import clock


def lines(*arguments: str) -> list[Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.usefixtures("cloud")
def test_a_setting_shows_its_value_and_record() -> None:
    assert lines("config", "get") == [{"version": 0, "settings": {}}]

    result = run("config", "set", "flags.colour", '"blue"', "--reason", "a trial", "--until", "2099-01-31T12:00Z", "-y")

    assert (result.exit_code, result.stdout) == (0, "version 1\n")
    assert 'flags.colour: not set -> "blue"' in result.stderr
    (found,) = lines("config", "get")
    colour = found["settings"]["flags.colour"]
    assert (found["version"], colour["value"], colour["reason"]) == (1, "blue", "a trial")
    assert colour["by"].startswith("arn:aws:sts:")
    assert colour["until"] == "2099-01-31T12:00:00.000Z"
    assert run("config", "get", "flags.colour").stdout == '"blue"\n'
    table = run("config", "get")
    assert "version 1" in table.stderr
    assert [line.split()[0] for line in table.stdout.splitlines()] == ["NAME", "flags.colour"]
    assert "2099-01-31 12:00:00Z" in table.stdout


@pytest.mark.usefixtures("cloud")
def test_the_history_shows_each_change() -> None:
    run("config", "set", "flags.a", "1", "--yes")
    assert lines("config", "set", "flags.a", "2", "--yes") == [
        {"version": 2, "name": "flags.a", "value": 2, "removed": False}
    ]
    run("config", "set", "flags.a", "--remove", "--reason", "done", "--yes")

    assert run("config", "get", "flags.a").exit_code == 1
    shown = [(one["version"], one["value"], one["removed"], one["reason"]) for one in lines("config", "history")]
    assert shown == [(3, None, True, "done"), (2, 2, False, None), (1, 1, False, None)]
    assert len(lines("config", "history", "--limit", "1")) == 1
    assert "removed" in run("config", "history").stdout


def test_every_change_of_a_time_is_in_the_history(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    began = clock.now()
    at = began - timedelta(minutes=200)
    configurator = Configurator(store=DynamoConfiguration(clients.dynamodb(), table=cloud.table.name), clock=lambda: at)
    for number in range(130):
        at = began - timedelta(minutes=129 - number)
        configurator.set(configurator.read(), "flags.a", number, by="ada", reason="")

    def versions(*options: str) -> list[int]:
        return [one["version"] for one in lines("config", "history", *options)]

    assert versions("--since", "1d") == list(range(130, 0, -1))
    assert versions() == list(range(130, 110, -1))
    assert versions("--limit", "120") == list(range(130, 10, -1))
    assert versions("--since", (began - timedelta(minutes=3)).isoformat()) == [130, 129, 128, 127]
    assert versions("--before", (began - timedelta(minutes=125)).isoformat()) == [4, 3, 2, 1]


@pytest.mark.usefixtures("interactive")
def test_a_change_between_question_and_answer_is_a_conflict(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DynamoConfiguration(clients.dynamodb(), table=cloud.table.name)

    def confirmed(*_: Any, **__: Any) -> bool:
        other = Configurator(store=store, clock=clock.now)
        other.set(other.read(), "flags.a", "theirs", by="arn:other", reason="")
        return True

    monkeypatch.setattr("tidemill.cli.operations.config.confirmed", confirmed)

    result = run("config", "set", "flags.a", '"mine"')

    assert result.exit_code == 1
    assert "another operator has changed the runtime configuration" in result.stderr
    assert "Read it again with `tidemill config get`" in result.stderr
    assert run("config", "get", "flags.a").stdout == '"theirs"\n'


@pytest.mark.usefixtures("cloud")
def test_a_change_of_another_version_than_the_named_one_is_refused() -> None:
    run("config", "set", "flags.a", "1", "--yes")

    late = run("config", "set", "flags.a", "2", "--version", "0", "--yes")

    assert late.exit_code == 1
    assert "has version 1, not 0: nothing was changed" in late.stderr
    assert run("config", "set", "flags.a", "2", "--version", "1", "--yes").exit_code == 0


@pytest.mark.usefixtures("cloud", "interactive")
def test_a_declined_change_changes_nothing() -> None:
    result = run("config", "set", "flags.a", "1", typed="n\n")

    assert (result.exit_code, "Nothing was changed." in result.stderr) == (0, True)
    assert lines("config", "get") == [{"version": 0, "settings": {}}]


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("flags.a", "blue", "--yes"), 2, "is not JSON: use true, 3, or a text in double quotes"),
        (("flags.a", "--yes"), 2, "either a VALUE or --remove"),
        (("flags.a", "1", "--remove", "--yes"), 2, "either a VALUE or --remove"),
        (("flags.a", "--remove", "--until", "1h", "--yes"), 2, "--until needs a VALUE"),
        (("flags.a", "1"), 2, "pass --yes"),
        (("flags.a", "1", "--until", "soon", "--yes"), 2, "a time of the day in UTC"),
        (("flags.a", "1", "--until", "2001-01-01T00:00Z", "--yes"), 1, "has passed already"),
        (
            ("colour", "1", "--yes"),
            1,
            "begins with flags., pauses., types., limits., breakers., quotas., caps. or weights.",
        ),
        (("types.mail.max_attempts", "99", "--yes"), 1, "max_attempts is 99; it must lie within 1 and 25"),
        (("flags.a", "--remove", "--yes"), 1, "no setting 'flags.a' is in force"),
    ],
)
def test_a_wrong_change_is_refused_with_its_fault(arguments: tuple[str, ...], code: int, complaint: str) -> None:
    result = run("config", "set", *arguments)

    assert result.exit_code == code
    assert complaint in " ".join(result.stderr.split())
    assert lines("config", "get") == [{"version": 0, "settings": {}}]


@pytest.mark.usefixtures("cloud", "interactive")
@pytest.mark.parametrize("arguments", [("colour", "1"), ("types.mail.max_attempts", "99"), ("flags.a", "--remove")])
def test_a_wrong_change_is_refused_before_the_question(arguments: tuple[str, ...]) -> None:
    result = run("config", "set", *arguments, typed="y\n")

    assert result.exit_code == 1
    assert "Change the runtime configuration?" not in result.stderr
    assert "->" not in result.stderr


@pytest.mark.parametrize(
    ("name", "value", "warning"),
    [
        ("types.test.jbo.max_attempts", "3", "it is not periodic, and 4 items of the table hold no job of this type"),
        ("breakers.paymets", '{"force": "open"}', "no worker has seen a call of this breaker fail"),
        ("types.test.job.max_attempts", "3", None),
        ("breakers.payments", '{"force": "open"}', None),
        ("quotas.anyone", '{"count": 1, "period_seconds": 60}', None),
    ],
)
def test_a_setting_of_a_name_that_nothing_has_is_a_warning(
    cloud: Cloud, name: str, value: str, warning: str | None
) -> None:
    cloud.store.insert_if_absent(a_job())
    policy = BreakerPolicy(name="payments")
    breakers = DynamoBreakers(clients.dynamodb(), table=cloud.table.name)
    breakers.fail(Breaker(name="payments"), policy, calls=1, call="a", by=Callers(), error="", now=clock.now())

    result = run("config", "set", name, value, "--yes", "--json")

    assert (result.exit_code, json.loads(result.stdout)["name"]) == (0, name)
    assert ("Warning" in result.stderr) is (warning is not None)
    assert (warning or "") in " ".join(result.stderr.split())


@pytest.mark.usefixtures("cloud", "interactive")
def test_the_warning_of_an_unknown_name_comes_before_the_question() -> None:
    result = run("config", "set", "types.test.jbo.max_attempts", "3", typed="n\n")

    assert result.stderr.index("may be misspelt") < result.stderr.index("Change the runtime configuration?")
    assert result.stderr.count("Warning") == 1


def test_status_and_explain_name_the_overrides(cloud: Cloud) -> None:
    now = clock.now()
    job = cloud.store.insert_if_absent(a_job(created_at=now, due=now))
    run(
        "config",
        "set",
        f"types.{job.type}.max_attempts",
        "3",
        "--reason",
        "INC-7",
        "--until",
        "2099-01-31T12:00Z",
        "-y",
    )
    run("config", "set", "types.other.timeout_seconds", "5", "--yes")

    (shown, _) = json.loads(run("status", "--json").stdout)["overrides"]
    assert (shown["type"], shown["option"], shown["value"], shown["reason"]) == (job.type, "max_attempts", 3, "INC-7")
    assert shown["until"] == "2099-01-31T12:00:00.000Z"
    status = run("status").stdout
    assert f"OVERRIDDEN: max_attempts of {job.type} is 3 by arn:aws:sts:" in status
    assert f"tidemill config set types.{job.type}.max_attempts --remove" in status
    explained = " ".join(run("explain", job.id).stdout.split())
    assert "max_attempts of its type is 3 by arn:aws:sts:" in explained
    assert "timeout_seconds" not in explained


def test_the_overrides_of_a_shared_limit_are_shown_and_those_of_its_type_left_out(cloud: Cloud) -> None:
    now = clock.now()
    wait = Wait(cause=Cause.LIMIT, key='["limit:payments", ""]', since=now)
    job = cloud.store.insert_if_absent(a_job(created_at=now, due=now, state=State.PARKED, wait=wait))
    for name, value in (("limits.payments", 5), (f"types.{job.type}", 9)):
        assert run("config", "set", f"{name}.concurrency_per_key", str(value), "--yes").exit_code == 0

    shown = json.loads(run("status", "--json").stdout)["overrides"]
    assert [(one["type"], one["limit"], one["value"]) for one in shown] == [(None, "payments", 5), (job.type, None, 9)]
    assert "OVERRIDDEN: concurrency_per_key of shared limit payments is 5 by" in run("status").stdout
    explained = " ".join(run("explain", job.id).stdout.split())
    assert "concurrency_per_key of the shared limit payments is 5 by" in explained
    assert "of its type" not in explained
    refused = run("config", "set", "limits.payments.max_attempts", "5", "--yes")
    assert "after the shared limit, use concurrency_per_key, rate_per_key" in " ".join(refused.stderr.split())


@pytest.mark.usefixtures("cloud")
def test_where_appconfig_is_the_source_the_command_deploys_and_shows_what_is_not_deployed(
    app_config: FakeAppConfig,
) -> None:
    assert run("config", "set", "flags.a", "1", "--yes").exit_code == 0
    assert json.loads(app_config.deployed or b"")["version"] == 1
    assert "AppConfig has version" not in run("config", "get").stderr

    app_config.deployment_errors = ["InternalServerException"]
    failed = run("config", "set", "flags.a", "2", "--yes")
    assert failed.exit_code == 1
    assert "version 2 is in the history, but does not act" in failed.stderr
    assert "AppConfig has version 1, which the functions read" in run("config", "get").stderr
    assert [one["version"] for one in lines("config", "history")] == [2, 1]


@pytest.mark.usefixtures("cloud")
def test_a_resume_that_appconfig_did_not_take_is_deployed_without_a_further_change(app_config: FakeAppConfig) -> None:
    assert run("pause", "lane=default", "--yes").exit_code == 0
    app_config.deployment_errors = ["InternalServerException"] * 2
    assert run("resume", "lane=default", "--yes").exit_code == 1
    assert "PAUSED: lane=default" in run("status").stdout

    refused = run("config", "deploy", "--yes")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "AppConfig did not take the configuration" in refused.stderr
    assert lines("config", "deploy", "--yes", "--json") == [{"version": 2}]
    assert "PAUSED" not in run("status").stdout
    assert [one["version"] for one in lines("config", "history")] == [2, 1]


@pytest.mark.usefixtures("cloud")
def test_a_stage_without_appconfig_has_nothing_to_deploy() -> None:
    refused = run("config", "deploy", "--yes")

    assert refused.exit_code == 1
    assert "does not have AppConfig as its source" in refused.stderr


@pytest.mark.usefixtures("cloud")
def test_while_appconfig_denies_the_access_the_commands_say_that_what_acts_is_unknown(
    app_config: FakeAppConfig,
) -> None:
    assert run("pause", "lane=default", "--yes").exit_code == 0
    assert "PAUSED: lane=default" in run("status").stdout

    app_config.poll_errors = ["AccessDeniedException"] * 2
    shown = run("config", "get")
    assert shown.exit_code == 0
    assert "AppConfig cannot be read" in shown.stderr
    assert "pauses.lane=default" in shown.stdout
    status = run("status").stdout
    assert "Pauses: not read: AppConfig did not answer" in status
    assert "PAUSED" not in status


@pytest.mark.usefixtures("cloud")
def test_a_pause_that_appconfig_did_not_take_is_not_shown_as_one(app_config: FakeAppConfig) -> None:
    assert run("config", "set", "flags.a", "1", "--yes").exit_code == 0
    app_config.deployment_errors = ["InternalServerException"]
    assert run("pause", "lane=default", "--yes").exit_code == 1

    assert "PAUSED" not in run("status").stdout
