"""The choice of the stack, and the URL of its API."""

import json
from dataclasses import replace

import boto3
import pytest
from botocore.stub import Stubber

from tests.integration.cli.conftest import Cloud, pipeline, run, shortener
from tests.integration.cli.loopback import Loopback, Stack
from tidemill.names import Tag
from tidemill.operator.deployments.deployment import Deployment, DeploymentNotFoundError, find

LANES = json.dumps({"default": {"queue": "https://q", "dead_letters": "https://l"}})


def test_the_only_pipeline_stack_is_found_beside_the_shortener(cloud: Cloud) -> None:
    result = run("status")
    assert result.exit_code == 0
    assert "dev-Pipeline in eu-west-1" in result.stderr


def test_a_missing_stack_is_explained(server: Loopback) -> None:
    server.stacks = [shortener(), replace(pipeline("jobs", LANES), tags={"tidemill:app": "another"})]
    result = run("status")
    assert result.exit_code == 1
    assert "found no Tidemill stack in eu-west-1" in result.stderr
    assert "npx cdk deploy" in result.stderr


def test_several_stacks_are_named_in_the_error(server: Loopback) -> None:
    server.stacks = [pipeline("jobs", LANES, name="one-Pipeline"), pipeline("jobs", LANES, name="two-Pipeline")]
    result = run("status")
    assert result.exit_code == 1
    assert "one-Pipeline, two-Pipeline" in result.stderr
    assert "--stack" in result.stderr


@pytest.mark.parametrize("by_variable", [False, True])
def test_the_named_stack_is_chosen_among_several(
    server: Loopback, environment: pytest.MonkeyPatch, by_variable: bool
) -> None:
    server.stacks = [pipeline("jobs", LANES, name="one"), pipeline("jobs", LANES, name="two")]
    if by_variable:
        environment.setenv("TIDEMILL_STACK", "two")
    assert run(*([] if by_variable else ["--stack", "two"]), "get", "x").exit_code == 0


def test_an_unknown_stack_name_is_explained(server: Loopback) -> None:
    result = run("--stack", "nope", "status")
    assert result.exit_code == 1
    assert "found no stack 'nope' in eu-west-1" in result.stderr


def test_a_stack_without_the_outputs_is_explained(server: Loopback) -> None:
    result = run("--stack", "dev-Shortener", "status")
    assert result.exit_code == 1
    assert "lacks the outputs of a Tidemill: ApiUrl, JobsTable" in result.stderr


@pytest.mark.parametrize("lanes", ["malformed", '{"default": {}}', '{"default": 7}'])
def test_outputs_of_another_version_are_explained(server: Loopback, lanes: str) -> None:
    server.stacks = [pipeline("jobs", lanes)]
    result = run("status")
    assert result.exit_code == 1
    assert "this version cannot read the outputs" in result.stderr


def test_the_region_comes_from_the_option_or_either_variable(server: Loopback, environment: pytest.MonkeyPatch) -> None:
    server.stacks = []
    environment.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert "in eu-west-1 " in run("status").stderr
    environment.delenv("AWS_REGION")
    assert "in us-west-2 " in _run_without_cache("status")
    assert "in ap-south-1 " in _run_without_cache("--region", "ap-south-1", "status")


def _run_without_cache(*arguments: str) -> str:
    from tidemill.aws import clients

    clients.cloudformation.cache_clear()
    return run(*arguments).stderr


def _found(endpoint: str | None, stack: Stack) -> Deployment:
    client = boto3.client(
        "cloudformation",
        region_name="eu-west-1",
        endpoint_url=endpoint,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )
    description = {
        "StackName": stack.name,
        "CreationTime": 0,
        "StackStatus": "CREATE_COMPLETE",
        "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in stack.outputs.items()],
        "Tags": [{"Key": key, "Value": value} for key, value in stack.tags.items()],
    }
    with Stubber(client) as stubber:
        stubber.add_response("describe_stacks", {"Stacks": [], "NextToken": "more"})
        stubber.add_response("describe_stacks", {"Stacks": [description]}, {"NextToken": "more"})
        return find(client, None)


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        (None, "https://a1b2.invalid"),
        ("https://vpce-1.cloudformation.eu-west-1.vpce.amazonaws.com", "https://a1b2.invalid"),
        ("http://127.0.0.1:4566", "http://127.0.0.1:4566/_aws/execute-api/a1b2/$default"),
        ("http://localhost:4566/", "http://localhost:4566/_aws/execute-api/a1b2/$default"),
        ("http://aws.localhost:4566", "http://aws.localhost:4566/_aws/execute-api/a1b2/$default"),
        ("http://[::1]:4566", "http://[::1]:4566/_aws/execute-api/a1b2/$default"),
    ],
)
def test_the_api_is_below_a_local_endpoint_and_otherwise_at_the_url_of_the_output(
    endpoint: str | None, url: str
) -> None:
    found = _found(endpoint, pipeline("jobs", LANES))
    assert found.api_url == url
    assert found.jobs_table == "jobs"
    assert found.lanes["default"].dead_letters == "https://l"


def test_the_tag_alone_does_not_identify_a_stack() -> None:
    with pytest.raises(DeploymentNotFoundError):
        _found(None, Stack("x", {"ApiUrl": "https://x"}, {str(Tag.APP): "tidemill"}))
