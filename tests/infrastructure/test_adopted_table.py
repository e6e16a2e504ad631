"""A stage that adopts an existing jobs table is the same stage, with another table."""

import json
from typing import Any, Final

import pytest

from tests.infrastructure.conftest import Resource, Synthesise, Synthesised, without_digests
from tidemill.names import Env
from tidemill.operator.deployments.synthesised_app import needed_exports
from tidemill.operator.drift.expected_resource import Expected, Kind, LatestStream
from tidemill.operator.drift.expected_state import expected

TABLE_ARN: Final = "arn:aws:dynamodb:eu-central-1:123456789012:table/jobs-restored"
STREAM_ARN: Final = f"{TABLE_ARN}/stream/2026-11-22T18:03:42.123"
OWN_TABLE: Final = "JobsTable10C8EDF6"
LITERALS: Final[dict[str, Any]] = {
    json.dumps({"Fn::GetAtt": [OWN_TABLE, "Arn"]}): TABLE_ARN,
    json.dumps({"Fn::GetAtt": [OWN_TABLE, "StreamArn"]}): STREAM_ARN,
    json.dumps({"Ref": OWN_TABLE}): "jobs-restored",
}


@pytest.fixture(scope="module")
def adopted(synthesise: Synthesise) -> Synthesised:
    return synthesise(stage="dev", jobs_stream=STREAM_ARN)


def _with_literals(value: Any) -> Any:
    """References to the stack's own table are replaced with the name and the ARNs of the adopted one."""
    if isinstance(value, list):
        return [_with_literals(each) for each in value]
    if not isinstance(value, dict):
        return value
    if (literal := LITERALS.get(json.dumps(value))) is not None:
        return literal
    replaced = {key: _with_literals(each) for key, each in value.items()}
    if isinstance(resources := replaced.get("Resource"), list):
        # CDK sorts the resources of a statement by their text.
        replaced["Resource"] = sorted(resources, key=json.dumps)
    return _joined(replaced["Fn::Join"]) if "Fn::Join" in replaced else replaced


def _joined(join: Any) -> Any:
    """A join as CDK writes it, which puts neighbouring texts together."""
    separator, parts = join
    if separator or not isinstance(parts, list):
        return {"Fn::Join": join}
    merged: list[Any] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return merged[0] if len(merged) == 1 and isinstance(merged[0], str) else {"Fn::Join": [separator, merged]}


def _resources(template: Resource) -> dict[str, Any]:
    resources = json.loads(without_digests(json.dumps(template["Resources"])))
    without_table = {id_: each for id_, each in resources.items() if id_ != OWN_TABLE}
    return {id_: _with_literals(each) for id_, each in without_table.items()}


@pytest.mark.parametrize("settings", [{}, {"listing": "off"}])
def test_only_the_table_differs(synthesise: Synthesise, settings: dict[str, str]) -> None:
    adopted = synthesise(stage="dev", jobs_stream=STREAM_ARN, **settings)
    own = synthesise(stage="dev", **settings)
    assert _resources(adopted.pipeline) == _resources(own.pipeline)
    assert OWN_TABLE not in adopted.pipeline["Resources"]


def test_the_stack_of_an_application_is_deployed_before_the_pipeline(adopted: Synthesised, dev: Synthesised) -> None:
    """Otherwise CloudFormation would have to remove an export that it imports."""
    wanted = {"Pipeline": adopted.pipeline, "Shortener": adopted.shortener}
    assert list(needed_exports({"Pipeline": dev.pipeline, "Shortener": dev.shortener}, wanted)) == [
        ("Pipeline", "Shortener")
    ]
    first = {"Pipeline": dev.pipeline, "Shortener": adopted.shortener}
    # What it imports by then is still exported, and after it nothing is in the way.
    assert list(needed_exports({"Pipeline": adopted.pipeline, "Shortener": adopted.shortener}, first)) == []
    assert list(needed_exports(first, wanted)) == []


def test_functions_mapping_and_output_name_the_adopted_table(adopted: Synthesised) -> None:
    tables = {
        function["Environment"]["Variables"].get(Env.JOBS_TABLE, "jobs-restored")
        for _, function in adopted.of_type("AWS::Lambda::Function")
    }
    sources = {
        mapping["EventSourceArn"]
        for _, mapping in adopted.of_type("AWS::Lambda::EventSourceMapping")
        if isinstance(mapping["EventSourceArn"], str)
    }
    assert tables == {"jobs-restored"}
    assert sources == {STREAM_ARN}
    assert adopted.pipeline["Outputs"]["JobsTable"]["Value"] == "jobs-restored"


def test_all_functions_that_name_the_table_have_its_epoch(
    synthesise: Synthesise, adopted: Synthesised, dev: Synthesised
) -> None:
    restored = synthesise(stage="dev", jobs_stream=STREAM_ARN, epoch="2")
    for app, epoch in ((restored, "2"), (adopted, None), (dev, None)):
        variables = [function["Environment"]["Variables"] for _, function in app.of_type("AWS::Lambda::Function")]
        assert {each.get(Env.EPOCH) for each in variables if Env.JOBS_TABLE in each} == {epoch}
        assert app.pipeline["Outputs"]["Epoch"]["Value"] == (epoch or "0")


def test_synth_says_what_is_not_in_the_stack(adopted: Synthesised, dev: Synthesised) -> None:
    warning = "jobs_stream names an existing table: its indexes, TTL, backups and protection are not in this stack."
    assert [each for each in adopted.warnings if warning in each]
    assert not [each for each in dev.warnings if warning in each]


def _expected(app: Synthesised) -> list[Expected]:
    ids = {logical_id: f"physical-{logical_id}" for logical_id in app.pipeline["Resources"]}
    stack_id = "arn:aws:cloudformation:eu-central-1:123456789012:stack/Tidemill-dev-Pipeline/guid"
    return list(expected(app.pipeline, physical_ids=ids, functions={}, stack_id=stack_id))


def test_each_compared_value_of_the_stage_is_understood(adopted: Synthesised) -> None:
    assert [state for state in _expected(adopted) if state.unreadable] == []


@pytest.mark.parametrize("stage", ["dev", "prod"])
def test_the_adopted_table_and_its_stream_are_compared_as_those_of_the_stack_are(
    synthesise: Synthesise, stage: str
) -> None:
    adopted, own = (_expected(synthesise(stage=stage, **settings)) for settings in ({"jobs_stream": STREAM_ARN}, {}))

    (table,) = [each for each in adopted if each.physical_id == "jobs-restored"]
    (own_table,) = [each for each in own if each.logical_id == OWN_TABLE]
    assert (table.kind, table.settings) == (Kind.TABLE, own_table.settings)
    (mapping,) = [each for each in adopted if "EventSourceArn" in each.settings]
    assert mapping.settings["EventSourceArn"] == LatestStream("jobs-restored")
