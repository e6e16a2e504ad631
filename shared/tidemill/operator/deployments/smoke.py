"""What only an account can show after a deployment: rights, lanes, drift, alarms, quotas, log groups.

Each check makes calls that change nothing but their own canary jobs, and says what to fix.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

from tidemill.application.ports import Clock
from tidemill.aws import clients
from tidemill.aws.clients import AWS_ERRORS, translated
from tidemill.aws.http_client import HttpApi
from tidemill.domain.errors import TidemillError
from tidemill.domain.states import TERMINAL, State
from tidemill.names import CANARY_TYPE, COMPARE, TICK_PAYLOAD, TICK_SCHEDULED_AT, TICK_TYPE
from tidemill.operator.deployments.deployed_template import deployed_template
from tidemill.operator.deployments.deployment import Deployment, log_groups, stacks_of
from tidemill.operator.deployments.function_call import FunctionFailedError, ask
from tidemill.operator.status import alarm_states
from tidemill.operator.status.alarm_states import Severity

#: How long the canary jobs may take: a cold start of each function on their way, and the batching windows.
CANARY_PATIENCE: Final = timedelta(seconds=90)
_POLL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check. It passed without faults; `remedy` says what to do about them."""

    check: str
    faults: Sequence[str]
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoke:
    """The checks of one deployment. `anonymous` sends no identity. `pause` waits for so many seconds."""

    deployment: Deployment
    api: HttpApi
    anonymous: HttpApi
    clock: Clock
    pause: Callable[[float], None]

    def findings(self) -> Iterator[Finding]:
        """In this order. The later checks see what the calls of the earlier ones left behind."""
        for name, check, remedy in (
            ("authorisation", self._authorisation, "Open no route: check the authoriser of the API in the template."),
            (
                "requests",
                self._requests,
                "`tidemill logs` and the log group of the function name the right or setting that is missing.",
            ),
            (
                "lanes",
                self._lanes,
                "`tidemill status` shows where the job waits: publish, the lane's event source mapping, or the worker.",
            ),
            ("scheduled functions", self._scheduled, "The log group of the function has the error."),
            (
                "drift",
                self._drift,
                "If reconcile may not read a resource, deploy again; else run `tidemill repair`.",
            ),
            ("alarms", self._alarms, "Follow the advice of each alarm: `tidemill status` shows it."),
            (
                "quotas",
                self._quotas,
                "Request a higher quota `Concurrent executions` of Lambda in Service Quotas, or lower max_concurrency.",
            ),
            ("log groups", self._log_groups, "Deploy again: CloudFormation creates the log groups."),
        ):
            yield Finding(check=name, faults=_faults(check), remedy=remedy)

    def _authorisation(self) -> Iterator[str]:
        status = self.anonymous.request("GET", "/jobs").status
        if status not in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            yield f"GET /jobs without an identity answers {status} instead of 401 or 403"

    def _requests(self) -> Iterator[str]:
        """One of each function behind the API. None of them finds or changes a job."""
        unknown = f"/jobs/{uuid4()}"
        submission = json.dumps({"type": "smoke.unknown", "payload": {}}).encode()
        for function, method, path, body, expected in (
            ("query", "GET", unknown, b"", HTTPStatus.NOT_FOUND),
            ("control", "POST", f"{unknown}/cancel", b"", HTTPStatus.NOT_FOUND),
            ("submit", "POST", "/jobs", submission, HTTPStatus.UNPROCESSABLE_ENTITY),
        ):
            answer = self._request(method, path, body)
            if answer[0] != expected:
                yield f"{function}: {method} {path} answers {answer[0]} instead of {expected}: {answer[1]}"

    def _lanes(self) -> Iterator[str]:
        """A canary of the caller passes each lane. It has no effect, since only the stage's own canary counts."""
        if "canary" not in self.deployment.functions:
            return
        waiting: dict[str, str] = {}
        for lane in self.deployment.lanes:
            body = json.dumps({"type": CANARY_TYPE, "lane": lane, "payload": {"lane": lane}}).encode()
            status, job = self._request("POST", "/jobs", body)
            if status != HTTPStatus.ACCEPTED:
                yield f"lane {lane}: a canary job is answered with {status}: {job}"
            else:
                waiting[lane] = job["id"]
        ends_at = self.clock() + CANARY_PATIENCE
        while waiting:
            for lane, job_id in list(waiting.items()):
                _, job = self._request("GET", f"/jobs/{job_id}")
                state = job.get("state", "unknown")
                if state in TERMINAL:
                    del waiting[lane]
                    if state == State.DEAD:
                        yield f"lane {lane}: the canary job {job_id} is dead: {job.get('reason', '')}"
                elif self.clock() >= ends_at:
                    del waiting[lane]
                    yield f"lane {lane}: the canary job {job_id} is still {state} after {CANARY_PATIENCE.seconds} s"
            if waiting:
                self.pause(_POLL_SECONDS)

    def _scheduled(self) -> Iterator[str]:
        """Each as the scheduler calls it, which may happen at any time. Tick only looks at a payload."""
        events: dict[str, Mapping[str, str]] = {"wake": {}, "canary": {}}
        if periodic := next(iter(self.deployment.schedules), None):
            at = self.clock().isoformat()
            events["tick"] = {TICK_TYPE: periodic, TICK_SCHEDULED_AT: at, TICK_PAYLOAD: "{}"}
        for verb in self.deployment.functions.keys() & events:
            try:
                ask(self.deployment, verb, events[verb])
            except FunctionFailedError as error:
                yield str(error)

    def _drift(self) -> Iterator[str]:
        """Ask reconcile, which compares with its own rights."""
        differences = ask(self.deployment, "reconcile", {COMPARE: "true"})
        yield from (f"{resource}: {difference}" for resource, difference in differences.items())

    def _alarms(self) -> Iterator[str]:
        stacks = stacks_of(clients.cloudformation(), self.deployment.stage)
        found = alarm_states.read(clients.cloudwatch(), stacks, page_topic=self.deployment.page_topic)
        if not found.by_name:
            yield "the stage has no alarm"
        for severity in (Severity.PAGE, Severity.TICKET):
            yield from (f"{alarm.name} fires: {alarm.meaning}" for alarm in found.firing(severity))

    def _quotas(self) -> Iterator[str]:
        """https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html."""
        with translated():
            quota = clients.lambda_().get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
        resources = deployed_template(clients.cloudformation(), self.deployment.stack)["Resources"].values()
        mappings = [each["Properties"] for each in resources if each["Type"] == "AWS::Lambda::EventSourceMapping"]
        wanted = sum(each.get("ScalingConfig", {}).get("MaximumConcurrency", 0) for each in mappings)
        if quota < wanted:
            yield f"the account runs {quota} functions at a time, and the lanes may take {wanted}"

    def _log_groups(self) -> Iterator[str]:
        for key, group in log_groups(clients.cloudformation(), self.deployment):
            with translated():
                found = clients.logs().describe_log_groups(logGroupNamePrefix=group)["logGroups"]
            named = [each for each in found if each["logGroupName"] == group]
            if not named:
                yield f"{key}: the log group {group} does not exist"
            elif "retentionInDays" not in named[0]:
                yield f"{key}: the log group {group} has no retention"

    def _request(self, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"} if body else {}
        answer = self.api.request(method, path, body=body, headers=headers)
        try:
            return answer.status, json.loads(answer.body)
        except ValueError:
            return answer.status, {}


def _faults(check: Callable[[], Iterator[str]]) -> Sequence[str]:
    """The faults of one check; what its calls raise is one, too, and hides none of the others."""
    found: list[str] = []
    try:
        found.extend(check())
    except (TidemillError, *AWS_ERRORS) as error:
        found.append(f"not checked: {error}")
    return found
