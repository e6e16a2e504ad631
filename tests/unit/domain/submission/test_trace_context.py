"""Trace contexts of callers: valid ones are kept, and everything else is ignored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.domain.submission.trace_context import from_traceparent, from_x_ray, request_of, trace_of, traceparent_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
CONTEXT = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("header", "context"),
    [
        (CONTEXT, CONTEXT),
        (f" {CONTEXT}\t", CONTEXT),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        # Flags that this version does not know are not passed on.
        (f"00-{TRACE}-{SPAN}-ff", f"00-{TRACE}-{SPAN}-03"),
        # A later version may append more.
        (f"01-{TRACE}-{SPAN}-01-what-comes", CONTEXT),
        (f"cc-{TRACE}-{SPAN}-01", CONTEXT),
    ],
)
def test_a_valid_traceparent_is_kept(header: str, context: str) -> None:
    assert from_traceparent(header) == context


@pytest.mark.parametrize(
    "header",
    [
        "",
        f"{CONTEXT}-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        CONTEXT.upper(),
        CONTEXT[:-1],
        f"{CONTEXT},{CONTEXT}",
        f"01-{TRACE}-{SPAN}-01.more",
        f"00-{TRACE}-{SPAN}-\u0661\u0661",
        f"{CONTEXT}\n",
    ],
)
def test_an_invalid_traceparent_is_ignored(header: str) -> None:
    assert from_traceparent(header) is None


@pytest.mark.parametrize(
    ("header", "context"),
    [
        (f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN};Sampled=1", CONTEXT),
        (f"Sampled=0; Parent={SPAN}; Root=1-{TRACE[:8]}-{TRACE[8:]};Lineage=a:0", f"00-{TRACE}-{SPAN}-00"),
        (f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN};Sampled=?", f"00-{TRACE}-{SPAN}-00"),
        # API Gateway adds this to a request that has none.
        (f"Root=1-{TRACE[:8]}-{TRACE[8:]}", None),
        (f"Root=2-{TRACE[:8]}-{TRACE[8:]};Parent={SPAN}", None),
        (f"Root=1-{TRACE};Parent={SPAN}", None),
        (f"Root=1-{TRACE[:8]}-{TRACE[8:]};Parent={'0' * 16}", None),
        (f"Root=1-{'0' * 8}-{'0' * 24};Parent={SPAN}", None),
        ("", None),
    ],
)
def test_a_header_of_x_ray_with_a_parent_is_a_context(header: str, context: str | None) -> None:
    assert from_x_ray(header) == context


@given(st.text())
def test_no_text_of_a_caller_fails(header: str) -> None:
    assert from_traceparent(header) is None
    assert from_x_ray(header) is None


@pytest.mark.parametrize("request_id", ["JKJaXmPLvHcESHA=", "a/3", "8d41d7a1-7fd5-4d3c-9c3f-6b1d2f3e4a5b", ""])
def test_a_trace_has_its_context_and_its_request(request_id: str) -> None:
    trace = trace_of(request_id, CONTEXT)

    assert (traceparent_of(trace), request_of(trace)) == (CONTEXT, request_id)
    assert (traceparent_of(request_id), request_of(request_id)) == (None, request_id)
    assert trace_of(request_id, None) == request_id


def test_a_request_that_looks_like_a_context_counts_as_a_request() -> None:
    assert (traceparent_of(CONTEXT), request_of(CONTEXT)) == (None, CONTEXT)


def test_a_context_replaces_an_earlier_one() -> None:
    child = f"00-{TRACE}-{'1' * 16}-01"

    assert trace_of(trace_of("request", CONTEXT), child) == f"{child}/request"
