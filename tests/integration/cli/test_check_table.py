"""`tidemill check`: whether a deployment would put another jobs table in the place of the one in use."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW
from tests.support.job_tables import create_table
from tidemill.application.restore.recover import Recovery
from tidemill.aws import clients
from tidemill.dynamodb.restore.restored_table import DynamoRecoveryLog
from tidemill.names import Env, Output

OWN: Final = {"Jobs": {"Type": "AWS::DynamoDB::Table", "Properties": {}}}
REFERENCE: Final = {"Ref": "Jobs"}


def _synthesised(folder: Path, table: Any, *, epoch: int, resources: Mapping[str, Any]) -> str:
    package = folder / "checked_app"
    package.mkdir()
    (package / "__init__.py").touch()
    variables = {str(Env.JOB_PACKAGES): package.name, str(Env.JOBS_TABLE): table}
    variables |= {str(Env.EPOCH): str(epoch)} if epoch else {}
    worker = {"Type": "AWS::Lambda::Function", "Properties": {"Environment": {"Variables": variables}}}
    assembly = folder / "cdk.out"
    assembly.mkdir()
    (assembly / "one.json").write_text(json.dumps({"Resources": {**resources, "Worker": worker}}))
    stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "one.json"}}
    (assembly / "manifest.json").write_text(json.dumps({"artifacts": {"dev-Pipeline": stack}}))
    return str(assembly)


def _deployed(cloud: Cloud, resources: Mapping[str, Any], *, epoch: int) -> None:
    stack = cloud.server.stacks[0]
    outputs = {**stack.outputs, Output.EPOCH: str(epoch)}
    cloud.server.stacks[0] = replace(stack, outputs=outputs, template={"Resources": resources})


def _recovered(name: str, *, epoch: int, replaces: str) -> None:
    recovery = Recovery(epoch=epoch, table=name, replaces=replaces, began_at=NOW)
    DynamoRecoveryLog(clients.dynamodb(), table=name).write(recovery, seen=None)


def _refusals(assembly: str) -> list[str]:
    found: list[str] = json.loads(run("check", "--app", assembly, "--json").stdout)["refusals"]
    return found


def test_a_deployment_that_leaves_an_adopted_table_is_refused(cloud: Cloud, tmp_path: Path) -> None:
    _deployed(cloud, {"Topic": {"Type": "AWS::SNS::Topic"}}, epoch=2)
    assembly = _synthesised(tmp_path, REFERENCE, epoch=0, resources=OWN)

    (refusal,) = _refusals(assembly)

    assert refusal.startswith(f"the stage would leave the jobs table {cloud.table.name} of epoch 2 for one of its own")
    shown = run("check", "--app", assembly)
    assert shown.exit_code == 1
    assert "stacks/stages.py" in shown.stderr


def test_the_own_table_of_the_stage_is_not_refused(cloud: Cloud, tmp_path: Path) -> None:
    _deployed(cloud, OWN, epoch=0)
    assert _refusals(_synthesised(tmp_path, REFERENCE, epoch=0, resources=OWN)) == []


@pytest.mark.parametrize(("epoch", "refused"), [(1, True), (2, False), (3, False)])
def test_a_lower_epoch_of_the_adopted_table_is_refused(
    cloud: Cloud, tmp_path: Path, epoch: int, *, refused: bool
) -> None:
    _deployed(cloud, {}, epoch=2)
    found = _refusals(_synthesised(tmp_path, cloud.table.name, epoch=epoch, resources={}))
    assert found == (["the epoch 1 is lower than that in use, 2"] if refused else [])


@pytest.mark.parametrize(
    ("epoch", "replaces", "refused"),
    [
        (1, None, False),
        (2, None, True),
        (1, "jobs-of-prod", True),
    ],
)
def test_another_table_must_be_recovered_for_this_stage(
    cloud: Cloud, tmp_path: Path, epoch: int, replaces: str | None, *, refused: bool
) -> None:
    _deployed(cloud, OWN, epoch=0)
    restored = create_table(clients.dynamodb()).name
    _recovered(restored, epoch=1, replaces=cloud.table.name if replaces is None else replaces)

    found = _refusals(_synthesised(tmp_path, restored, epoch=epoch, resources={}))

    assert len(found) == refused
    assert all(f"{restored}, which was not recovered as epoch" in each for each in found)


def test_a_table_that_does_not_exist_is_refused(cloud: Cloud, tmp_path: Path) -> None:
    _deployed(cloud, OWN, epoch=0)
    assert len(_refusals(_synthesised(tmp_path, "absent", epoch=1, resources={}))) == 1
