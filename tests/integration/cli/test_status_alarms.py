"""`status`: which alarms fire, how fast the error budgets are spent, and how each type fares."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click
import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.described_alarms import DescribedAlarms
from tidemill.aws import clients
from tidemill.metrics import Metric

PAGE_TOPIC, TICKET_TOPIC = "arn:pages", "arn:tickets"


def _alarm(name: str, meaning: str, *, minutes: int = 0, actions: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """One that fires since some minutes, or not."""
    return {
        "AlarmName": f"dev-Pipeline-{name}",
        "AlarmDescription": f"Tidemill-dev: {meaning} What to do: https://runbook#{name.lower()}",
        "StateValue": "ALARM" if minutes else "OK",
        "StateTransitionedTimestamp": datetime.now(UTC) - timedelta(minutes=minutes, seconds=1),
        "AlarmActions": list(actions),
        **more,
    }


def _rule(*names: str) -> dict[str, Any]:
    return {"AlarmRule": " OR ".join(f'(ALARM("dev-Pipeline-{name}"))' for name in names)}


@pytest.fixture
def alarms(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> DescribedAlarms:
    """A page with two parts, a ticket, and the composite of all pages. None fires."""
    found = DescribedAlarms(
        others=clients.cloudwatch(),
        metric_alarms=[
            _alarm("LateCanary-bulk", "The canary job of lane bulk is late."),
            _alarm("Established", "The installation is not new.", minutes=9000, TreatMissingData="ignore"),
            _alarm("IdlePublisher", "The publisher is not called.", actions=(TICKET_TOPIC,)),
        ],
        composites=[
            _alarm(
                "LateCanary",
                "A canary job is late.",
                actions=(TICKET_TOPIC,),
                **_rule("LateCanary-bulk", "Established"),
            ),
            _alarm("Page", "Users are affected now.", actions=(PAGE_TOPIC,), **_rule("LateCanary")),
        ],
    )
    monkeypatch.setattr(clients, "cloudwatch", lambda: found)
    return found


def _fire(alarms: DescribedAlarms, **minutes: int) -> None:
    for alarm in (*alarms.metric_alarms, *alarms.composites):
        name = alarm["AlarmName"].removeprefix("dev-Pipeline-").replace("-", "_")
        if name in minutes:
            at = datetime.now(UTC) - timedelta(minutes=minutes[name], seconds=1)
            alarm |= {"StateValue": "ALARM", "StateTransitionedTimestamp": at}


def _lines(*arguments: str) -> list[str]:
    result = run("status", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout.splitlines()


@pytest.mark.usefixtures("alarms")
def test_without_a_firing_alarm_one_line_says_so() -> None:
    assert _lines()[1] == "None of 2 alarms fires"


def test_a_page_its_parts_and_further_causes_come_first_with_what_to_do(alarms: DescribedAlarms) -> None:
    _fire(alarms, LateCanary_bulk=13, LateCanary=12, Page=12, IdlePublisher=10)
    lines = _lines()
    assert lines[:5] == [
        "PAGE since 12m: A canary job is late.",
        "  The canary job of lane bulk is late.",
        "  https://runbook#latecanary",
        "TICKET since 10m: The publisher is not called.",
        "  https://runbook#idlepublisher",
    ]
    assert "1 page and 1 ticket of 2 alarms fire; the page was sent 12m ago" in lines


@pytest.mark.usefixtures("terminal")
def test_a_page_is_red(alarms: DescribedAlarms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    _fire(alarms, LateCanary=12)
    (line,) = (line for line in _lines() if "PAGE since" in line)
    assert line.startswith("\x1b[1;31m")


def test_alarms_of_other_stacks_are_left_out(alarms: DescribedAlarms) -> None:
    alarms.metric_alarms.append(_alarm("Own", "Ours.", minutes=1, actions=("a",)) | {"AlarmName": "another-Own"})
    assert _lines()[1] == "None of 2 alarms fires"


@pytest.mark.usefixtures("cloud")
def test_an_installation_without_alarms_says_so() -> None:
    assert _lines()[1] == "No alarms here: the stacks have none"


def _judging(name: str, minutes: int, above: float) -> dict[str, Any]:
    metric = {"Namespace": "Tidemill", "MetricName": "Bad", "Dimensions": []}
    return _alarm(
        f"x-{name}-{minutes}m",
        "It burns.",
        AlarmDescription=f"Tidemill-dev: It burns. What to do: https://runbook#{name}",
        Threshold=above,
        Metrics=[
            {"Id": "bad", "MetricStat": {"Metric": metric, "Period": 60 * minutes, "Stat": "Sum"}, "ReturnData": False},
            {"Id": "judged", "Expression": "100 * bad / 1000"},
        ],
    )


def test_burn_rates_are_a_table_with_the_rates_that_fire(alarms: DescribedAlarms) -> None:
    alarms.metric_alarms += [_judging("failed-submissions", 60, 1.44), _judging("failed-submissions", 5, 1.44)]
    alarms.metric_alarms += [_judging("late-starts", 60, 1.44), _judging("late-starts", 5, 1.44)]
    alarms.values = {"Bad": 33}
    lines = _lines()
    at = next(number for number, line in enumerate(lines) if line.startswith("BURN RATE"))
    assert [re.split(" {2,}", line) for line in lines[at : at + 3]] == [
        ["BURN RATE OF (FIRES ABOVE)", "5M (14.4)", "1H (14.4)"],
        ["failed submissions", "33", "33"],
        ["late starts of the lane critical", "33", "33"],
    ]
    found = json.loads(run("status", "--json").stdout)["burn_rates"]
    assert found[0] == {"of": "failed submissions", "window_seconds": 300, "rate": 33, "fires_above": 14.4}


def test_json_has_the_firing_alarms(alarms: DescribedAlarms) -> None:
    _fire(alarms, LateCanary_bulk=13, LateCanary=12, Page=12)
    found = json.loads(run("status", "--json").stdout)["alarms"]
    (firing,) = found.pop("firing")
    assert found == {"number": 2, "incident": True}
    assert datetime.fromisoformat(firing.pop("since")) < datetime.now(UTC)
    assert firing == {
        "name": "dev-Pipeline-LateCanary",
        "severity": "page",
        "meaning": "A canary job is late.",
        "what_to_do": "https://runbook#latecanary",
        "parts": ["The canary job of lane bulk is late."],
    }


def _measured(type_: str, **values: float) -> None:
    dimensions = {"stage": "dev", "type": type_}
    clients.cloudwatch().put_metric_data(
        Namespace="Tidemill",
        MetricData=[
            {
                "MetricName": metric,
                "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
                "Timestamp": datetime.now(UTC) - timedelta(minutes=1),
                "Value": value,
            }
            for metric, value in values.items()
        ],
    )


@pytest.mark.usefixtures("cloud")
def test_types_come_from_metrics_where_the_stage_measures_them() -> None:
    _measured("mail.send", **{Metric.SUCCEEDED: 5, Metric.START_LATENCY: 900})
    _measured("mail.fetch", **{Metric.RETRIED: 3, Metric.DEAD: 1, Metric.START_LATENCY: 150_000})
    _measured("other", **{Metric.SUCCEEDED: 9, Metric.START_LATENCY: 4000})
    lines = _lines()
    at = next(number for number, line in enumerate(lines) if line.startswith("TYPE, LAST 5M"))
    assert [re.split(" {2,}", line) for line in lines[at : at + 4]] == [
        ["TYPE, LAST 5M", "SUCCEEDED", "RETRIED", "DEAD", "LONGEST WAIT"],
        ["mail.fetch", "0", "3", "1", "2m"],
        ["other", "9", "0", "0", "4s"],
        ["mail.send", "5", "0", "0", "0s"],
    ]
    assert json.loads(run("status", "--json").stdout)["flow"]["types"]["mail.fetch"] == {
        "JobsSucceeded": 0,
        "JobsRetried": 3,
        "JobsDead": 1,
        "longest_wait_seconds": 150,
    }


@pytest.mark.usefixtures("terminal")
def test_a_terminal_of_80_columns_shows_burn_rates_without_wrapping(alarms: DescribedAlarms) -> None:
    windows = [(5, 1.44), (30, 0.6), (60, 1.44), (360, 0.6)]
    alarms.metric_alarms += [_judging("late-starts", minutes, above) for minutes, above in windows]
    alarms.values = {"Bad": 333.3}
    lines = click.unstyle(run("status").stdout).splitlines()
    (row,) = (line for line in lines if line.startswith("late starts of the lane critical"))
    assert row.split()[-4:] == ["333"] * 4
