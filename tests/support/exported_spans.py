"""The spans that have left the functions of a test."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tidemill.telemetry.spans import Spans
from tidemill.telemetry.tracing import tracing


@dataclass
class Exported:
    """The spans that have left the functions."""

    exporter: InMemorySpanExporter

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span


@contextmanager
def exported_spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exported]:
    """The functions trace. Spans leave by a flush only."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=3_600_000))
    spans = Spans(provider)
    for name, module in list(sys.modules.items()):
        if name.startswith("tidemill.") and getattr(module, "tracing", None) is tracing:
            monkeypatch.setattr(module, "tracing", lambda: spans)
    yield Exported(exporter)
    provider.shutdown()
