"""Each function that works on jobs does all its work within the span of its invocation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tidemill.entrypoints import publish, submit, work


class Spans:
    """`Tracing` that knows whether an invocation is under way."""

    def __init__(self) -> None:
        self.open: list[tuple[str, Any]] = []
        self.seen: list[tuple[str, Any]] = []

    @contextmanager
    def invocation(self, name: str, context: Any) -> Iterator[None]:
        self.open.append((name, context))
        yield
        self.open.pop()

    def works(self, *_: Any) -> dict[str, Any]:
        self.seen += self.open
        return {"done": True}

    #: The function serves as an app of the API, and as a worker.
    resolve = work = works


@pytest.mark.parametrize(
    ("entrypoint", "made", "name"),
    [
        (publish, "_published", "publish"),
        (submit, "_app", "submit"),
        (work, "worker", "work"),
    ],
)
def test_the_work_of_an_invocation_is_within_its_span(
    entrypoint: Any, made: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans, context = Spans(), object()
    monkeypatch.setattr(entrypoint, "tracing", lambda: spans)
    monkeypatch.setattr(entrypoint, made, spans.works if made == "_published" else lambda: spans)

    assert entrypoint.handle({}, context) == {"done": True}

    assert spans.seen == [(name, context)]
    assert spans.open == []
