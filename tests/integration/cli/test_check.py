"""`tidemill check`: the app of the working copy against the live jobs and the resources of the deployed stack."""

import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest
from click.testing import Result

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import LEASE, NOW, brought_to, claimed
from tidemill.application.ports import LimitSlot
from tidemill.aws import clients
from tidemill.domain.limits.limits import Limit
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.document import key
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.names import Env
from tidemill.system import clock

STACK: Final = "dev-Pipeline"
TABLE: Final = {"Type": "AWS::DynamoDB::Table", "Properties": {"KeySchema": [{"AttributeName": "pk"}]}}
QUEUE: Final = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "critical"}}
RESOURCES: Final[Mapping[str, Any]] = {"Jobs": TABLE, "Queue": QUEUE, "Topic": {"Type": "AWS::SNS::Topic"}}
FILE: Final = """\
from pydantic import BaseModel
from tidemill import job_type

class Address(BaseModel):
    street: {model}

@job_type("mail.welcome", payload=Address{options})
def welcome(address, run):
    return None
"""
_numbers = itertools.count()


class WorkingCopy:
    """The folder of an app with one job file, and the output of its synth."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.package = ""

    def holds(self, model: str = "str", *, options: str = "", **app: Any) -> None:
        self.writes(FILE.format(model=model, options=options), **app)

    def writes(
        self,
        text: str,
        *,
        resources: Mapping[str, Any] = RESOURCES,
        stack: str = STACK,
        further: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        # A name of its own, so that nothing of the copy before is imported.
        self.package = f"checked_jobs_{next(_numbers)}"
        folder = self.root / self.package
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "mail.py").write_text(text)
        variables = {str(Env.JOB_PACKAGES): self.package}
        worker = {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": variables}}}
        assembly = self.root / "cdk.out"
        assembly.mkdir(exist_ok=True)
        (assembly / "one.json").write_text(json.dumps({"Resources": {**resources, "Worker": worker}}))
        stacks = {stack: {"type": "aws:cloudformation:stack", "properties": {"templateFile": "one.json"}}}
        for name, template in further.items():
            (assembly / f"{name}.json").write_text(json.dumps(template))
            stacks[name] = {"type": "aws:cloudformation:stack", "properties": {"templateFile": f"{name}.json"}}
        (assembly / "manifest.json").write_text(json.dumps({"artifacts": stacks | {"Tree": {"type": "cdk:tree"}}}))

    def check(self, *options: str) -> Result:
        return run("check", "--app", str(self.root / "cdk.out"), *options)


@pytest.fixture
def copy(cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkingCopy]:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(clock, "now", lambda: NOW)
    cloud.server.stacks[0] = replace(cloud.server.stacks[0], template={"Resources": RESOURCES})
    yield WorkingCopy(tmp_path)
    for name in [name for name in sys.modules if name.startswith("checked_jobs_")]:
        del sys.modules[name]


def live_job(cloud: Cloud, payload: Any = None, **changes: Any) -> str:
    text = json.dumps({"street": "Main"} if payload is None else payload)
    return brought_to(cloud.store, State.QUEUED, **{"type": "mail.welcome", "payload": text, **changes}).id


def test_jobs_that_fit_may_be_deployed_over(cloud: Cloud, copy: WorkingCopy) -> None:
    live_job(cloud)
    copy.holds()
    before = cloud.contents()

    result = copy.check()

    assert (result.exit_code, result.stderr) == (0, "Read 1 item of the table.\n")
    assert cloud.contents() == before
    assert result.stdout.splitlines()[1].split() == ["mail.welcome", "1", "1", "0"]
    assert result.stdout.splitlines()[2:] == ["No live job that was read would be refused."]


def test_a_model_that_refuses_live_jobs_is_refused_with_three_examples_and_no_payload(
    cloud: Cloud, copy: WorkingCopy
) -> None:
    refused = {live_job(cloud, {"street": f"secret {number}"}) for number in range(4)}
    live_job(cloud, {"street": 7})
    copy.holds("int")

    result = copy.check()

    assert result.exit_code == 1
    examples = [line for line in result.stdout.splitlines() if ": job " in line]
    assert len(examples) == 3
    for line in examples:
        assert any(f"mail.welcome: job {job_id} of tenant " in line for job_id in refused)
        assert "/payload/street: Input should be a valid integer" in line
    assert "secret" not in result.output
    assert "Error: do not deploy: the new model of mail.welcome refuses live jobs" in result.stderr

    document = json.loads(copy.check("--json").stdout)
    (shown,) = document["types"]
    assert (shown["live"], shown["compared"], shown["refused"], len(shown["examples"])) == (5, 5, 4, 3)
    assert set(shown["examples"][0]) == {"id", "tenant", "pointer", "detail"}
    assert document["whole"] is True


def test_jobs_that_have_ended_and_payloads_beside_their_jobs(cloud: Cloud, copy: WorkingCopy) -> None:
    """The first refuse nothing, and the second are read."""
    brought_to(cloud.store, State.DEAD, type="mail.welcome", payload='{"street": "x"}')
    live_job(cloud, {"street": 1})
    stored = live_job(cloud, payload_at="item/gone")
    copy.holds("int")

    shown = json.loads(copy.check("--json").stdout)["types"][0]

    assert (shown["live"], shown["compared"], shown["refused"], shown["unread"]) == (2, 1, 0, 1), stored


@pytest.mark.parametrize("raised", ["ValueError(value)", "KeyError(value)"])
def test_a_validator_that_raises_refuses(cloud: Cloud, copy: WorkingCopy, raised: str) -> None:
    live_job(cloud, {"street": "secret"})
    copy.writes(
        FILE.format(model="str", options="")
        .replace(
            "@job_type",
            f"    @field_validator('street')\n    def known(cls, value):\n        raise {raised}\n\n@job_type",
        )
        .replace("import BaseModel", "import BaseModel, field_validator")
    )

    result = copy.check()

    assert result.exit_code == 1
    assert ("the model raises KeyError" in result.stdout) is raised.startswith("KeyError")


def test_a_broken_job_file_is_refused_and_its_jobs_would_be_parked(cloud: Cloud, copy: WorkingCopy) -> None:
    live_job(cloud)
    copy.writes("1 / 0\n")

    result = copy.check()

    assert result.exit_code == 1
    assert f"do not deploy: {copy.package}/mail.py, line 1: ZeroDivisionError" in result.stderr.replace("\n", " ")
    assert "What to do: Correct the job file" in result.stderr
    assert "`tidemill migrate`" not in result.stderr
    (warning,) = json.loads(copy.check("--json").stdout)["warnings"]
    assert warning.startswith(
        "1 live job of the type mail.welcome, which a broken job file may declare, would be parked"
    )


def test_a_type_with_live_jobs_that_the_new_code_lacks_is_a_warning(cloud: Cloud, copy: WorkingCopy) -> None:
    for _ in range(2):
        live_job(cloud, type="mail.bye")
    copy.holds()

    result = copy.check("--json")

    assert result.exit_code == 0
    (warning,) = json.loads(result.stdout)["warnings"]
    assert warning.startswith("2 live jobs of the type mail.bye, which the new code lacks")


@pytest.mark.parametrize(("slots", "warned"), [(1, True), (2, False)])
def test_a_limit_below_what_is_in_use_is_a_warning(
    cloud: Cloud, copy: WorkingCopy, slots: int, *, warned: bool
) -> None:
    limits = DynamoLimits(clients.dynamodb(), table=cloud.table.name)
    for number in range(2):
        job = brought_to(cloud.store, State.QUEUED, type="mail.welcome", payload='{"street": "a"}')
        running = claimed(cloud.store, job)
        line = Line.for_limit(json.dumps(["mail.welcome", "a", job.tenant]))
        slot = LimitSlot(
            line=line, limit=Limit(concurrency=9), token=f"t{number}", until=NOW + LEASE, job=(job.tenant, running.id)
        )
        limits.acquire(slot, now=NOW)
    copy.holds(options=f", key=lambda address: address.street, concurrency_per_key={slots}")

    warnings = json.loads(copy.check("--json").stdout)["warnings"]

    assert len(warnings) == warned
    if warned:
        assert warnings[0].endswith("is 1, and 2 of its slots are in use")


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"Jobs": TABLE, "Queue": QUEUE}, None),
        ({"Jobs": TABLE}, "AWS::SQS::Queue Queue is no longer in the template"),
        ({"Jobs": QUEUE, "Queue": QUEUE}, "AWS::DynamoDB::Table Jobs is no longer in the template"),
        (
            {"Jobs": TABLE, "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "other"}}},
            "AWS::SQS::Queue Queue gets another QueueName",
        ),
        (
            {"Queue": QUEUE, "Jobs": {"Type": TABLE["Type"], "Properties": {"TableName": "jobs", "KeySchema": []}}},
            "AWS::DynamoDB::Table Jobs gets another TableName and KeySchema",
        ),
    ],
)
def test_a_stateful_resource_that_would_be_replaced_is_a_warning(
    copy: WorkingCopy, resources: Mapping[str, Any], expected: str | None
) -> None:
    copy.holds(resources=resources)

    warnings = json.loads(copy.check("--json").stdout)["warnings"]

    assert warnings == ([f"{STACK}: {expected}, so its content would be lost or left behind"] if expected else [])


@pytest.mark.parametrize("imported", [True, False])
def test_an_export_that_another_stack_still_imports_is_refused_with_the_order(
    cloud: Cloud, copy: WorkingCopy, *, imported: bool
) -> None:
    outputs = {"Topic": {"Value": {"Ref": "Topic"}, "Export": {"Name": "dev-Pipeline:Topic"}}}
    actions = [{"Fn::ImportValue": "dev-Pipeline:Topic"}] if imported else []
    alarm = {"Type": "AWS::CloudWatch::Alarm", "Properties": {"AlarmActions": actions}}
    pipeline, shortener = cloud.server.stacks
    cloud.server.stacks[:] = [
        replace(pipeline, template={"Resources": RESOURCES, "Outputs": outputs}),
        replace(shortener, template={"Resources": {"Alarm": alarm}}),
    ]
    copy.holds(further={"dev-Shortener": {"Resources": {"Alarm": alarm}}})

    result = copy.check()

    assert result.exit_code == (1 if imported else 0)
    said = " ".join(result.stderr.split())
    assert ("dev-Shortener still imports what dev-Pipeline would export no longer" in said) is imported
    assert ("npx cdk deploy --exclusively dev-Shortener" in said) is imported


def test_the_scan_ends_at_its_bound(cloud: Cloud, copy: WorkingCopy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.dynamodb.passes.job_scan._ITEMS", 1)
    for _ in range(3):
        live_job(cloud)
    copy.holds()

    result = copy.check("--most-read-units", "1", "--read-units", "1000000")

    assert "of the table, which has more." in result.stderr


def test_an_app_that_was_not_synthesised_is_named_with_what_to_do(copy: WorkingCopy) -> None:
    result = copy.check()

    assert result.exit_code == 1
    assert "cdk.out holds no synthesised app" in result.stderr
    assert "npx cdk synth -q -c stage=STAGE" in result.stderr


def test_an_app_of_another_stage_is_refused(copy: WorkingCopy) -> None:
    copy.writes("", stack="prod-Pipeline")

    assert f"holds prod-Pipeline, and the deployed stack is {STACK}" in copy.check().stderr.replace("\n", " ")


def test_a_job_that_cannot_be_read_is_named_and_fails_the_check(cloud: Cloud, copy: WorkingCopy) -> None:
    live_job(cloud)
    broken = brought_to(cloud.store, State.QUEUED, type="mail.welcome")
    cloud.table.client.update_item(
        TableName=cloud.table.name,
        Key=key(broken.tenant, broken.id),
        UpdateExpression="REMOVE #type",
        ExpressionAttributeNames={"#type": "type"},
    )
    copy.holds()

    shown, printed = copy.check(), copy.check("--json")

    assert (shown.exit_code, printed.exit_code) == (1, 1)
    assert "Error: 1 job could not be read, and may be live\n" in shown.stderr
    assert "No live job that was read would be refused." in shown.stdout
    found = json.loads(printed.stdout)
    (unreadable,) = found["unreadable"]
    assert broken.id in unreadable["key"]
    assert unreadable["detail"]
    assert [one["compared"] for one in found["types"]] == [1]
    assert found["refusals"] == []
