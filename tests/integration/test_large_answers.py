"""Answers of the API that could exceed the 6 MiB of Lambda. The caller would then get an error without a reason."""

import json

from tests.support.deployed_functions import Mill


def test_an_answer_lists_the_first_of_very_many_faults_and_says_that_there_are_more(mill: Mill) -> None:
    unknown = {f"é{number}": 1 for number in range(15_000)}
    body = {"type": "test.scripted", "payload": {"n": "many"}}

    answer = mill.post_text(json.dumps(body | unknown, ensure_ascii=False))
    batch = mill.post_batch([body | {"x" * 250_000: 1} | dict.fromkeys(list(unknown)[:200], 1)] * 2)

    assert (answer.status, answer.body["type"]) == (422, "urn:tidemill:problem:invalid-body")
    assert answer.body["errors"][0] == {"pointer": "#/%C3%A90", "detail": "Extra inputs are not permitted"}
    assert answer.body["errors"][-1] == {"pointer": "#", "detail": "there are more faults"}
    assert len(json.dumps(answer.body)) < 32_000
    assert [each["problem"]["errors"][-1]["pointer"] for each in batch.body["jobs"]] == ["#/jobs/0", "#/jobs/1"]
    assert len(json.dumps(batch.body)) < 64_000
