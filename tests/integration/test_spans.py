"""Spans of a stage with tracing: in the trace of the job, linked to the invocation, and exported before it ends."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import trace as api
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

from tests.support.deployed_functions import Context, Mill
from tests.support.exported_spans import Exported
from tests.support.http_events import http_event
from tidemill import Done, Run, Submission
from tidemill.domain.submission.trace_context import traceparent_of
from tidemill.entrypoints import submit
from tidemill.names import Env
from tidemill.system.current_span import current_traceparent
from tidemill.telemetry import tracing as tracing_module
from tidemill.telemetry.tracing import Tracing

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = f"00-{TRACE}-{PARENT}-01"


def post(**headers: str) -> str:
    body = json.dumps({"type": "test.scripted"})
    event = http_event("POST", "/jobs", body=body, headers={"content-type": "application/json", **headers})
    answer = submit.handle(event, Context())
    assert answer["statusCode"] == 202
    return str(json.loads(answer["body"])["id"])


def parent_id(span: ReadableSpan) -> str:
    assert span.parent is not None
    return f"{span.parent.span_id:016x}"


def test_the_spans_of_a_job_are_in_its_callers_trace_and_linked_to_their_invocations(
    mill: Mill, exported: Exported
) -> None:
    seen: list[str | None] = []
    mill.script.handler = lambda _payload, run: seen.extend([run.traceparent, current_traceparent()])
    job_id = post(traceparent=CONTEXT)
    mill.run()

    submitted, published, run, settle = (exported.one(n) for n in ("submit", "publish", "run test.scripted", "settle"))
    assert {f"{span.context.trace_id:032x}" for span in (submitted, published, run, settle)} == {TRACE}
    assert parent_id(submitted) == PARENT
    own = f"{submitted.context.span_id:016x}"
    assert [parent_id(span) for span in (published, run, settle)] == [own] * 3
    assert traceparent_of(mill.job(job_id).trace) == f"00-{TRACE}-{own}-01"
    assert seen == [f"00-{TRACE}-{run.context.span_id:016x}-01"] * 2
    for span, invocation in ((published, "publish"), (run, "work"), (settle, "work")):
        (link,) = span.links
        assert link.context.span_id in {each.context.span_id for each in exported.named(f"invoke {invocation}")}
    assert (run.attributes or {})["tidemill.job_id"] == job_id


def test_the_members_of_a_batch_are_linked_to_one_invocation_and_each_begins_its_own_trace(
    mill: Mill, exported: Exported
) -> None:
    for _ in range(3):
        post()
    mill.publish()
    mill.work(mill.receive())

    runs = exported.named("run test.scripted")
    invocation = exported.one("invoke work")
    assert len({span.context.trace_id for span in runs} | {invocation.context.trace_id}) == 4
    assert {link.context.span_id for span in runs for link in span.links} == {invocation.context.span_id}


def test_a_job_that_follows_is_a_child_of_the_run(mill: Mill, exported: Exported) -> None:
    runs: list[Run] = []

    def handler(_payload: Any, run: Run) -> Any:
        runs.append(run)
        return Done(then=[Submission(type="test.scripted")]) if len(runs) == 1 else None

    mill.script.handler = handler
    post(traceparent=CONTEXT)
    mill.run()

    first, second = exported.named("run test.scripted")
    assert parent_id(second) == f"{first.context.span_id:016x}"
    assert f"{second.context.trace_id:032x}" == TRACE


def test_a_failed_run_names_the_class_of_its_error_and_not_its_text(mill: Mill, exported: Exported) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        raise ValueError("c4n4ry")

    mill.script.handler = handler
    post()
    mill.publish()
    mill.work(mill.receive())

    run = exported.one("run test.scripted")
    assert (run.attributes or {})["error.type"] == "ValueError"
    assert not run.status.is_ok
    assert all("c4n4ry" not in span.to_json() for span in exported.exporter.get_finished_spans())


def test_an_exporter_that_fails_fails_no_job(mill: Mill, exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(TracerProvider, "force_flush", broken)
    job_id = post()
    mill.run()

    assert mill.job(job_id).state.terminal


def test_without_tracing_nothing_of_opentelemetry_is_imported() -> None:
    entrypoints = ("submit", "query", "control", "publish", "work", "wake", "tick", "reconcile")
    script = "; ".join(
        (
            "import sys",
            *(f"import tidemill.entrypoints.{name}" for name in entrypoints),
            "import tidemill.client",
            "from tidemill.telemetry.tracing import tracing",
            "tracing()",
            "assert not [name for name in sys.modules if name.startswith('opentelemetry')]",
        )
    )
    environment = {name: value for name, value in os.environ.items() if name != Env.TRACING}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


def test_tracing_without_its_packages_is_a_line_in_the_log_and_no_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(Env.TRACING, "true")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    tracing_module.tracing.cache_clear()
    try:
        assert type(tracing_module.tracing()) is Tracing
    finally:
        tracing_module.tracing.cache_clear()


def test_a_client_takes_the_span_that_is_recorded() -> None:
    assert current_traceparent() is None
    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("own") as span:
        context = span.get_span_context()
        assert current_traceparent() == f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
        with api.use_span(api.NonRecordingSpan(context)):
            assert current_traceparent() is None


def test_a_variable_that_opentelemetry_refuses_stops_no_function(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused() -> None:
        raise ValueError("could not convert string to float: '10s'")

    monkeypatch.setenv(Env.TRACING, "true")
    monkeypatch.setattr("tidemill.telemetry.spans.Spans.of_this_function", refused)
    tracing_module.tracing.cache_clear()
    try:
        assert type(tracing_module.tracing()) is Tracing
    finally:
        tracing_module.tracing.cache_clear()
    assert [(record.getMessage(), vars(record)["error"]) for record in caplog.records] == [
        ("no tracing", "ValueError: could not convert string to float: '10s'")
    ]
