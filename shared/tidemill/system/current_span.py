"""The span that is current in this thread, if the program uses OpenTelemetry. Imports nothing of it."""

import sys


def current_traceparent() -> str | None:
    """None if no span is being recorded. A program that has not imported OpenTelemetry's API has no span."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    span = api.get_current_span()
    context = span.get_span_context()
    if not (span.is_recording() and context.is_valid):
        return None
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
