"""DynamoDB throttles a write of a function: a line of the log names the item and what was throttled."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders

from tests.support.builders import a_job
from tests.support.deployed_functions import Mill
from tests.support.job_tables import REGION
from tests.support.parked_jobs import enter
from tidemill import composition
from tidemill.domain.submission.submission import Submission
from tidemill.domain.waiting.waiting import Line
from tidemill.metrics import Metric
from tidemill.names import Env
from tidemill.telemetry import outcome_log

ARN = f"arn:aws:dynamodb:{REGION}:123456789012:table/jobs/index/listing"
REASON = {"reason": "IndexWriteKeyRangeThroughputExceeded", "resource": ARN}


class _Raw:
    """The body of a response."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._body


@dataclass
class Throttling:
    """Answers the next writes of the operation with these errors, instead of moto."""

    operation: str
    answers: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, request: Any, **_: Any) -> AWSResponse | None:
        if not self.answers:
            return None
        body = json.dumps(self.answers.pop(0)).encode()
        return AWSResponse(request.url, 400, HTTPHeaders(), _Raw(body))


def _throttled(**members: Any) -> dict[str, Any]:
    return {"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slower", **members}


@pytest.fixture
def throttle(mill: Mill) -> Iterator[Any]:
    events: Any = mill.table.client.meta.events
    made: list[tuple[str, Throttling]] = []

    def throttle(operation: str, *answers: dict[str, Any]) -> None:
        made.append((f"before-send.dynamodb.{operation}", Throttling(operation, list(answers))))
        events.register_first(*made[-1])

    yield throttle
    for name, answering in made:
        events.unregister(name, answering)


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if line["message"] == "write throttled"]


def test_a_throttled_submission_names_its_key_and_its_partition_though_a_retry_succeeds(
    mill: Mill, throttle: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    throttle("PutItem", _throttled(throttlingReasons=[REASON]), _throttled(throttlingReasons=[REASON]))
    job_id = mill.accepted()

    (line,) = _lines(capsys)
    assert (line["level"], line["operation"], line[Metric.WRITES_THROTTLED]) == ("WARNING", "PutItem", 1)
    (key,) = line["keys"]
    assert key.endswith(f"#{job_id}")
    (partition,) = line["partitions"]
    assert partition.startswith("listing ")
    assert line["reasons"] == ["IndexWriteKeyRangeThroughputExceeded table/jobs/index/listing"]


def test_the_throttled_entry_of_a_transaction_is_named_and_the_others_are_not(
    mill: Mill, throttle: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [{"Code": "None"}, {"Code": "ThrottlingError", "Message": "slower"}]
    cancelled = {"__type": "x#TransactionCanceledException", "message": "cancelled", "CancellationReasons": codes}
    throttle("TransactWriteItems", cancelled)
    composition.parts().submit(Submission(type="test.scripted", group="parcels"), tenant="ada", trace="a request")

    (line,) = _lines(capsys)
    assert len(line["keys"]) == 1
    assert "parcels" in line["keys"][0]


def test_a_write_that_is_refused_or_succeeds_writes_no_line(mill: Mill, capsys: pytest.CaptureFixture[str]) -> None:
    mill.post(key="a key")
    mill.post(key="a key")
    mill.run()

    assert _lines(capsys) == []


@pytest.mark.parametrize("withheld", ["", "true"])
def test_a_stage_that_withholds_text_names_a_limit_by_a_digest(
    mill: Mill, throttle: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, withheld: str
) -> None:
    """The key of a limit is a part of a payload."""
    monkeypatch.setenv(Env.WITHHOLD_EXCEPTION_TEXT, withheld)
    monkeypatch.setattr("tidemill.telemetry.throttled_writes.logger", outcome_log.new_logger)
    throttle("UpdateItem", _throttled())
    enter(composition.parts().limits, a_job(), line=Line.for_limit("test.job#c4n4ry"))

    (line,) = _lines(capsys)
    assert ("c4n4ry" in str(line)) is not bool(withheld)
    assert line["keys"][0]
