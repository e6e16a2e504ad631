"""No payload, header or text of an exception reaches a log line, metric, span or message where the stage forbids it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.deployed_functions import Context, Mill
from tests.support.exported_spans import Exported
from tests.support.http_events import http_event
from tests.support.job_tables import client
from tidemill.application.attempt.run import Run
from tidemill.domain.attempt.return_values import GiveUp
from tidemill.domain.errors import PermanentJobError
from tidemill.entrypoints import submit
from tidemill.telemetry.line_format import LineFormat
from tidemill.telemetry.outcome_log import logger

CANARY = "c4n4ry"


@pytest.fixture
def _withheld() -> Iterator[None]:
    formatter, logger().formatter = logger().formatter, LineFormat(withhold=True)
    yield
    logger().formatter = formatter


def _fail(payload: Any, _run: Run) -> Any:
    if payload.n == 0:
        raise PermanentJobError(f"no such address: {payload.secret}")
    if payload.n == 1:
        raise ValueError(payload.secret) from KeyError(payload.secret)
    return GiveUp(payload.secret)


#: Headers of a request that no part of the engine needs to repeat.
_HEADERS = (
    "authorization",
    "cookie",
    "user-agent",
    "x-forwarded-for",
    "x-amz-security-token",
    "x-custom",
    "tracestate",
)


def _post(payload: Any) -> int:
    headers = {"content-type": "application/json", "idempotency-key": f"{CANARY}-{payload['n']}"}
    event = http_event(
        "POST",
        "/jobs",
        body=json.dumps({"type": "test.scripted", "payload": payload}),
        headers=headers
        | dict.fromkeys(_HEADERS, CANARY)
        | {"traceparent": CANARY, "x-amzn-trace-id": f"Root={CANARY}"},
        query=f"q={CANARY}",
    )
    return int(submit.handle(event, Context())["statusCode"])


@pytest.mark.usefixtures("_withheld")
def test_no_canary_leaves_a_stage_that_withholds_text(
    mill: Mill, exported: Exported, capsys: pytest.CaptureFixture[str]
) -> None:
    sent: list[str] = []
    client("sqs").meta.events.register("before-call.sqs", keep := lambda params, **_: sent.append(str(params["body"])))
    mill.script.handler = _fail
    for number in range(3):
        assert _post({"n": number, "secret": CANARY}) == 202
    assert _post({"n": CANARY}) == 422
    mill.run()
    client("sqs").meta.events.unregister("before-call.sqs", keep)

    written = capsys.readouterr().out
    # Each failed as it should: twice at once, and once after all its attempts.
    assert written.count('"message":"dead"') == 3
    assert "".join(sent).count("error_class") == 3
    assert len(exported.named("run test.scripted")) == 5
    spans = [span.to_json() for span in exported.exporter.get_finished_spans()]
    for where in (written, *sent, *spans):
        assert CANARY not in where


def test_a_stage_that_permits_it_logs_the_text_of_exceptions(mill: Mill, capsys: pytest.CaptureFixture[str]) -> None:
    mill.script.handler = _fail
    mill.accepted({"n": 0, "secret": CANARY})
    mill.run()

    assert f"no such address: {CANARY}" in capsys.readouterr().out
