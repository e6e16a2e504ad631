"""`tidemill smoke`: each check passes on a sound deployment, and each is shown to fail."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from moto import mock_aws

from tests.integration.cli.conftest import pipeline
from tests.integration.cli.loopback import Loopback, Stack
from tests.support.builders import NOW
from tests.support.job_tables import REGION
from tidemill.aws import clients
from tidemill.aws.http_client import Answer
from tidemill.cli.main import tidemill
from tidemill.domain.errors import StoreUnavailableError
from tidemill.names import COMPARE
from tidemill.operator.deployments import deployment as deployments
from tidemill.operator.deployments.smoke import CANARY_PATIENCE, Finding, Smoke

CHECKS = ["authorisation", "requests", "lanes", "scheduled functions", "drift", "alarms", "quotas", "log groups"]
VERBS = ("submit", "query", "control", "publish", "work", "wake", "tick", "reconcile", "canary")


@dataclass
class Account:
    """Answers as a sound deployment does. A test breaks one member."""

    anonymous: int = 403
    #: By the function behind the API.
    status: dict[str, int] = field(default_factory=lambda: {"query": 404, "control": 404, "submit": 422, "canary": 202})
    canary_state: str = "cancelled"
    #: By verb: the error of a function.
    errors: dict[str, str] = field(default_factory=dict)
    differences: dict[str, str] = field(default_factory=dict)
    alarm: dict[str, Any] = field(
        default_factory=lambda: {
            "AlarmName": "dev-Pipeline-LostMessages",
            "AlarmDescription": "Tidemill-dev: Messages are lost. What to do: https://runbook#lost-messages",
            "StateValue": "OK",
            "StateUpdatedTimestamp": NOW,
            "AlarmActions": ["arn:tickets"],
        }
    )
    quota: int = 1000
    log_group: dict[str, Any] = field(default_factory=lambda: {"logGroupName": "/work", "retentionInDays": 7})
    invoked: list[tuple[str, Any]] = field(default_factory=list)

    # The API.
    def request(self, method: str, path: str, *, body: bytes = b"", headers: Any = None) -> Answer:
        assert headers is not None
        sent = json.loads(body) if body else {}
        if method == "GET" and path.startswith("/jobs/canary-"):
            return _answer(200, {"id": path.rpartition("/")[2], "state": self.canary_state})
        if sent.get("type") == "tidemill.canary":
            return _answer(self.status["canary"], {"id": f"canary-{sent['lane']}", "title": "refused"})
        function = "query" if method == "GET" else "control" if path.endswith("/cancel") else "submit"
        return _answer(self.status[function], {"title": "Access denied"})

    # Lambda, CloudWatch and CloudWatch Logs.
    def invoke(self, *, FunctionName: str, Qualifier: str, Payload: str) -> dict[str, Any]:  # noqa: N803
        verb = FunctionName.removeprefix("dev-")
        self.invoked.append((verb, json.loads(Payload)))
        assert Qualifier == "live"
        answer: Any = self.differences if COMPARE in Payload else None
        failed = {"FunctionError": "Unhandled"} if verb in self.errors else {}
        content = {"errorMessage": self.errors[verb]} if failed else answer
        return {"Payload": io.BytesIO(json.dumps(content).encode()), **failed}

    def get_account_settings(self) -> Any:
        return {"AccountLimit": {"ConcurrentExecutions": self.quota}}

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self, **_: Any) -> Any:
        return [{"MetricAlarms": [self.alarm] if self.alarm else [], "CompositeAlarms": []}]

    def describe_log_groups(self, **_: Any) -> Any:
        return {"logGroups": [self.log_group]}


def _answer(status: int, document: Any) -> Answer:
    return Answer(status=status, headers={}, body=json.dumps(document).encode())


class Anonymous:
    def __init__(self, account: Account) -> None:
        self._account = account

    def request(self, *_: Any) -> Answer:
        return _answer(self._account.anonymous, {})


@pytest.fixture
def account(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Account:
    found = Account()
    mapping = {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {"ScalingConfig": {"MaximumConcurrency": 50}}}
    stack = pipeline("jobs", json.dumps({"bulk": {"queue": "q", "dead_letters": "d"}}))
    outputs = {
        **stack.outputs,
        "Functions": json.dumps({verb: f"dev-{verb}" for verb in VERBS}),
        "LogGroups": json.dumps({"work": "/work"}),
        "Schedules": json.dumps({"report": "rate(1 hour)"}),
    }
    server.stacks = [Stack("dev-Pipeline", outputs, template={"Resources": {"A": mapping, "B": mapping}})]
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    for client in ("lambda_", "cloudwatch", "logs"):
        monkeypatch.setattr(clients, client, lambda: found)
    monkeypatch.setattr("tidemill.operator.deployments.function_call.invocations", lambda: found)
    return found


def _smoke(account: Account) -> Smoke:
    now = [NOW]

    def pause(seconds: float) -> None:
        now[0] += timedelta(seconds=seconds)

    api: Any = account
    anonymous: Any = Anonymous(account)
    found = deployments.find(clients.cloudformation(), None)
    return Smoke(deployment=found, api=api, anonymous=anonymous, clock=lambda: now[0], pause=pause)


def _findings(account: Account) -> dict[str, Finding]:
    return {each.check: each for each in _smoke(account).findings()}


def test_a_sound_deployment_passes_every_check(account: Account) -> None:
    found = _findings(account)
    assert list(found) == CHECKS
    assert {name: list(each.faults) for name, each in found.items() if each.faults} == {}
    assert {verb for verb, _ in account.invoked} == {"wake", "canary", "tick", "reconcile"}


BROKEN: dict[str, tuple[str, Callable[[Account], Any], str]] = {
    "an open API": ("authorisation", lambda a: setattr(a, "anonymous", 200), "answers 200 instead of 401 or 403"),
    "a query without rights": ("requests", lambda a: a.status.update(query=500), "query: GET /jobs/"),
    "a control without rights": ("requests", lambda a: a.status.update(control=500), "control: POST /jobs/"),
    "a submit without rights": ("requests", lambda a: a.status.update(submit=503), "submit: POST /jobs answers 503"),
    "a refused canary": (
        "lanes",
        lambda a: a.status.update(canary=503),
        "lane bulk: a canary job is answered with 503",
    ),
    "a lane that stands still": (
        "lanes",
        lambda a: setattr(a, "canary_state", "queued"),
        f"canary-bulk is still queued after {CANARY_PATIENCE.seconds} s",
    ),
    "a lane whose jobs die": ("lanes", lambda a: setattr(a, "canary_state", "dead"), "canary-bulk is dead"),
    "a wake without rights": ("scheduled functions", lambda a: a.errors.update(wake="AccessDenied"), "AccessDenied"),
    "a tick without rights": ("scheduled functions", lambda a: a.errors.update(tick="AccessDenied"), "AccessDenied"),
    "a reconcile without rights": ("drift", lambda a: a.errors.update(reconcile="AccessDenied"), "AccessDenied"),
    "a drift": ("drift", lambda a: a.differences.update({"schedule Wake": "DISABLED"}), "schedule Wake: DISABLED"),
    "an alarm": ("alarms", lambda a: a.alarm.update(StateValue="ALARM"), "LostMessages fires: Messages are lost."),
    "no alarms": ("alarms", lambda a: a.alarm.clear(), "the stage has no alarm"),
    "a small quota": (
        "quotas",
        lambda a: setattr(a, "quota", 10),
        "runs 10 functions at a time",
    ),
    "no log group": ("log groups", lambda a: a.log_group.update(logGroupName="/work-2"), "/work does not exist"),
    "no retention": ("log groups", lambda a: a.log_group.pop("retentionInDays"), "/work has no retention"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_each_check_fails_alone_and_names_what_is_wrong(account: Account, fault: str) -> None:
    check, break_it, text = BROKEN[fault]
    break_it(account)
    failed = {name: each for name, each in _findings(account).items() if each.faults}
    assert list(failed) == [check]
    assert text in "\n".join(failed[check].faults)
    assert failed[check].remedy


def test_every_check_is_broken_here() -> None:
    assert {check for check, _, _ in BROKEN.values()} == set(CHECKS)


def test_a_check_that_cannot_be_made_hides_no_other(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(**_: Any) -> Any:
        raise StoreUnavailableError("no answer")

    monkeypatch.setattr(account, "describe_log_groups", unavailable)
    monkeypatch.setattr(account, "get_account_settings", unavailable)
    failed = {name: list(each.faults) for name, each in _findings(account).items() if each.faults}
    assert failed == {"quotas": ["not checked: no answer"], "log groups": ["not checked: no answer"]}


def test_a_stage_without_canaries_and_schedules_needs_none(account: Account, server: Loopback) -> None:
    (stack,) = server.stacks
    functions = {verb: f"dev-{verb}" for verb in VERBS if verb not in {"canary", "tick"}}
    server.stacks = [replace(stack, outputs={**stack.outputs, "Functions": json.dumps(functions), "Schedules": "{}"})]
    account.status["canary"] = 422
    assert not [each for each in _findings(account).values() if each.faults]


@mock_aws
def test_the_command_prints_what_to_fix_and_exits_with_1(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.cli.deployments.smoke.Smoke", lambda **_: _smoke(account))
    assert CliRunner().invoke(tidemill, ["smoke"]).exit_code == 0
    account.quota = 10
    shown = CliRunner().invoke(tidemill, ["smoke"])
    assert shown.exit_code == 1
    assert "passed  lanes" in shown.stdout
    assert "failed  quotas" in shown.stdout
    assert "Request a higher quota" in shown.stdout
    assert "1 check of this deployment failed" in shown.stderr
    as_json = [json.loads(line) for line in CliRunner().invoke(tidemill, ["smoke", "--json"]).stdout.splitlines()]
    assert [each["check"] for each in as_json if not each["ok"]] == ["quotas"]
