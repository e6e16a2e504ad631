"""The rights of a function of the app that submits jobs."""

import fnmatch
import json
from pathlib import Path
from typing import Any

import pytest

from tests.infrastructure.test_event_sources import Synthesis
from tests.support.builders import a_job
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.dynamodb import document
from tidemill.dynamodb.debounce.debounce_writes import debounce_item_key
from tidemill.names import JOB_KEY


@pytest.mark.parametrize("tenant", ["shop", None])
def test_a_function_that_debounces_may_update_jobs_and_their_debounce_keys(tmp_path: Path, tenant: str | None) -> None:
    synthesis = Synthesis(tmp_path)
    pipeline, functions = synthesis.pipeline, synthesis.functions
    names: dict[str, Any] = {
        "config": functions.config,
        "code": functions.code,
        "handler": "app.handle",
        "timeout_seconds": 10,
    }
    for verb, debounced in (("plain", False), ("debounce", True)):
        function = JobFunction(synthesis.stack, verb, verb=verb, environment={}, **names)
        pipeline.allow_submitting(function, tenant=tenant, debounced=debounced)

    policies = [each for each in synthesis.resources().values() if each["Type"] == "AWS::IAM::Policy"]
    plain, debounce = (
        [one for one in each["Properties"]["PolicyDocument"]["Statement"] if "dynamodb:" in json.dumps(one["Action"])]
        for each in sorted(policies, key=lambda each: "plain" not in json.dumps(each["Properties"]["Roles"]))
    )

    (statement,) = (one for one in debounce if one not in plain)
    assert statement["Action"] == ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    assert "JobsTable" in json.dumps(statement["Resource"])
    assert "UpdateItem" not in json.dumps(plain)
    if tenant:
        job = a_job(tenant=tenant)
        keys = [document.key(tenant, job.id)[JOB_KEY]["S"], debounce_item_key(tenant, "name")[JOB_KEY]["S"]]
        patterns = statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"]
        assert [
            len(fnmatch.filter([key], pattern.replace("[", "[[]"))) for key, pattern in zip(keys, patterns, strict=True)
        ] == [1, 1]
        assert statement["Condition"]["Null"] == {"dynamodb:LeadingKeys": "false"}
