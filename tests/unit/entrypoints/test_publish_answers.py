"""What publish answers the stream: the records that it must deliver again, and no others."""

import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from tidemill.composition import FunctionParts
from tidemill.dynamodb.dispatch import stream
from tidemill.entrypoints import publish
from tidemill.names import Env, Lane

CONTEXT: Any = SimpleNamespace(aws_request_id="request")


def records(table: str) -> dict[str, Any]:
    arn = f"arn:aws:dynamodb:eu-central-1:111122223333:table/{table}/stream/2045"
    return {"Records": [{"eventSourceARN": arn, "dynamodb": {"SequenceNumber": str(number)}} for number in (1, 2)]}


def again(*sequences: str) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": each} for each in sequences]}


class World:
    """All that a call uses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failed: list[str]) -> None:
        self.did: list[Any] = []
        self.failed, self.sent = failed, ["message"]
        self.began_ns = time.time_ns()
        monkeypatch.setenv(Env.JOBS_TABLE, "jobs")
        monkeypatch.setattr(FunctionParts, "publisher", SimpleNamespace(publish=self.publish))
        telemetry = SimpleNamespace(published=self.published, flush=lambda: self.did.append("flush"))
        monkeypatch.setattr(FunctionParts, "telemetry", lambda _: telemetry)
        monkeypatch.setattr(FunctionParts, "lane_urls", {Lane.BULK: "url"})
        monkeypatch.setattr(stream, "read", self.read)
        log = SimpleNamespace(warning=lambda text, *, extra: self.did.append((text, extra)))
        monkeypatch.setattr(publish, "logger", lambda: log)
        tracing = SimpleNamespace(invocation=lambda *_: nullcontext(), published=self.traced)
        monkeypatch.setattr(publish, "tracing", lambda: tracing)

    def read(self, event: Any, *, lanes: Any) -> Any:
        self.did.append(("read", len(event["Records"]), list(lanes)))
        return SimpleNamespace(changes=["change"], unreadable=["unreadable"])

    def publish(self, changes: Any, unreadable: Any) -> "World":
        self.did.append((changes, unreadable))
        return self

    def traced(self, sent: Any, *, began_ns: int) -> None:
        # From the call on, in which the messages were sent.
        assert self.began_ns <= began_ns <= time.time_ns()
        self.did.append(("traced", sent))

    def published(self, published: Any) -> None:
        assert published is self
        self.did.append("published")


@pytest.mark.parametrize("failed", [[], ["2"]])
def test_the_records_that_failed_are_delivered_again(failed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, failed)

    assert publish.handle(records("jobs"), CONTEXT) == again(*failed)

    assert world.did == [
        ("read", 2, [Lane.BULK]),
        (["change"], ["unreadable"]),
        "published",
        "flush",
        ("traced", ["message"]),
    ]


def test_the_records_of_another_table_are_all_kept_and_nothing_is_done_with_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch, [])

    assert publish.handle(records("before-the-restore"), CONTEXT) == again("1", "2")

    assert world.did == [("records of another table", {"records": 2})]
