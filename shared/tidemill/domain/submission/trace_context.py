"""The trace of a job: the W3C trace context of its submission, if any, and the request that made the job.

`TRACEPARENT/REQUEST`, or only `REQUEST`. Several requests may share a context, and each request has its own trace.
https://www.w3.org/TR/trace-context/#traceparent-header
"""

import re
from typing import Final

#: Version, trace id, parent id, flags. An id of zeros and the version `ff` are invalid. Later ones may append more.
_TRACEPARENT: Final = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
#: The flags of the present version: sampled, and a random trace id.
_KNOWN_FLAGS: Final = 0b11
#: https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
_X_RAY: Final = {
    "Root": re.compile(r"1-([0-9a-f]{8})-([0-9a-f]{24})"),
    "Parent": re.compile(r"(?!0{16})([0-9a-f]{16})"),
    "Sampled": re.compile(r"([01?])"),
}
_SEPARATOR: Final = "/"


def from_traceparent(header: str) -> str | None:
    """The context in the form of version 00; None for a header that is invalid, and so ignored."""
    found = _TRACEPARENT.fullmatch(header.strip(" \t"))
    if found is None or (found[1] == "00" and found[5]):
        return None
    return f"00-{found[2]}-{found[3]}-{int(found[4], 16) & _KNOWN_FLAGS:02x}"


def from_x_ray(header: str) -> str | None:
    """The context of `X-Amzn-Trace-Id`.

    None without a parent: API Gateway adds a header with `Root` alone, which does not come from the caller.
    """
    parts = dict(part.strip().partition("=")[::2] for part in header.split(";"))
    found = {name: pattern.fullmatch(parts.get(name, "")) for name, pattern in _X_RAY.items()}
    root, parent, sampled = found["Root"], found["Parent"], found["Sampled"]
    if root is None or parent is None:
        return None
    return from_traceparent(f"00-{root[1]}{root[2]}-{parent[1]}-{'01' if sampled and sampled[1] == '1' else '00'}")


def trace_of(request: str, traceparent: str | None) -> str:
    """The trace of a job. `request` is unique to its submission. A context that `request` has already is replaced."""
    own = request_of(request)
    return own if traceparent is None else f"{traceparent}{_SEPARATOR}{own}"


def traceparent_of(trace: str) -> str | None:
    """None for a trace without a context."""
    context, separator, _ = trace.partition(_SEPARATOR)
    return from_traceparent(context) if separator else None


def request_of(trace: str) -> str:
    return trace.partition(_SEPARATOR)[2] if traceparent_of(trace) else trace
