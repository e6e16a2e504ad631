"""Spans through OpenTelemetry. Only a stage with tracing imports this module.

The members of a batch belong to traces of their own, so their spans are linked to the span of the invocation, and not
nested in it: https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode, TraceFlags

from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.job_message import reference_of
from tidemill.domain.job import Job
from tidemill.domain.submission.trace_context import trace_of, traceparent_of
from tidemill.telemetry.tracing import Invocation, Tracing

#: The longest wait for an exporter at the end of an invocation. At most half of the time left is used.
_LONGEST_FLUSH_SECONDS: Final = 1.0


class Spans(Tracing):
    """`provider` is a `TracerProvider` of OpenTelemetry's SDK."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self._tracer: api.Tracer = provider.get_tracer("tidemill")
        #: The context of the invocation that runs now: an environment serves one at a time, with many threads.
        self._invocation: SpanContext | None = None

    @classmethod
    def of_this_function(cls) -> "Spans":
        """With the provider that a layer has set, or else one that exports over OTLP, as `OTEL_…` variables say.

        Raises `ImportError` without the SDK or the exporter.
        """
        provider: Any = api.get_tracer_provider()
        if not hasattr(provider, "force_flush"):
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

            service = os.environ.get("POWERTOOLS_SERVICE_NAME", "tidemill")
            provider = TracerProvider(resource=Resource.create({"service.name": service}))
            provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
            api.set_tracer_provider(provider)
        return cls(provider)

    @contextmanager
    def invocation(self, name: str, invocation: Invocation) -> Iterator[None]:
        attributes = {"faas.invocation_id": invocation.aws_request_id}
        with self._tracer.start_as_current_span(f"invoke {name}", attributes=attributes) as span:
            self._invocation = span.get_span_context()
            try:
                yield
            finally:
                self._invocation = None
        left_seconds = invocation.get_remaining_time_in_millis() / 1000
        self.flush(longest_seconds=min(_LONGEST_FLUSH_SECONDS, left_seconds / 2))

    @contextmanager
    def submit(self, trace: str) -> Iterator[str]:
        with self._span("submit", trace, SpanKind.PRODUCER, {}) as span:
            yield _continued(trace, span)

    def published(self, sent: Sequence[Dispatch], *, began_ns: int) -> None:
        for dispatch in sent:
            reference = reference_of(dispatch.body)
            attributes = {"tidemill.job_id": reference.job_id, "tidemill.lane": dispatch.lane}
            self._tracer.start_span(
                "publish",
                context=_parent(reference.trace),
                kind=SpanKind.PRODUCER,
                attributes=attributes,
                links=self._links(),
                start_time=began_ns,
            ).end()

    @contextmanager
    def run(self, job: Job) -> Iterator[str]:
        with self._span(f"run {job.type}", job.trace, SpanKind.CONSUMER, _attributes(job)) as span:
            yield _continued(job.trace, span)

    @contextmanager
    def settle(self, job: Job) -> Iterator[None]:
        with self._span("settle", job.trace, SpanKind.INTERNAL, _attributes(job)):
            yield

    def flush(self, *, longest_seconds: float) -> None:
        # An exporter that fails costs its spans, and no job.
        with suppress(Exception):
            self._provider.force_flush(timeout_millis=max(round(longest_seconds * 1000), 1))

    @contextmanager
    def _span(self, name: str, trace: str, kind: SpanKind, attributes: dict[str, Any]) -> Iterator[Span]:
        """A current span. The class of an error is recorded, and not its text, which may be private."""
        with self._tracer.start_as_current_span(
            name,
            context=_parent(trace),
            kind=kind,
            attributes=attributes,
            links=self._links(),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_status(StatusCode.ERROR)
                span.set_attribute("error.type", type(error).__name__)
                raise

    def _links(self) -> list[Link]:
        return [Link(self._invocation)] if self._invocation else []


def _attributes(job: Job) -> dict[str, Any]:
    return {
        "tidemill.job_id": job.id,
        "tidemill.job_type": job.type,
        "tidemill.lane": str(job.lane),
        "tidemill.attempt": job.attempt,
        "tidemill.generation": job.generation,
    }


def _parent(trace: str) -> Context:
    """The context of a job's spans. Without the caller's, they begin a trace outside of the invocation's."""
    traceparent = traceparent_of(trace)
    if traceparent is None:
        return Context()
    _, trace_id, span_id, flags = traceparent.split("-")
    remote = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
    return api.set_span_in_context(NonRecordingSpan(remote), Context())


def _continued(trace: str, span: Span) -> str:
    """The trace of what happens inside of the span."""
    here = span.get_span_context()
    return trace_of(trace, f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}")
