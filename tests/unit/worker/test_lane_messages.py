"""What the worker asks SQS for its messages, and that no failure of SQS leaves the module."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.support.builders import MILLISECOND, NOW, SECOND
from tidemill.worker import lane_messages
from tidemill.worker.lane_messages import LaneMessages

URL = "https://sqs.eu-central-1.amazonaws.com/111122223333/lane"
FAILURES: list[Exception] = [
    ClientError({"Error": {"Code": "InternalError", "Message": "no"}}, "DeleteMessageBatch"),
    ReadTimeoutError(endpoint_url=URL),
]


class Queue:
    """Notes each request. Raises `error`, or refuses every entry if `refuses`."""

    def __init__(self, *, error: Exception | None = None, refuses: bool = False) -> None:
        self.error = error
        self.refuses = refuses
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        return self._take("hide", request)

    def delete_message_batch(self, **request: Any) -> dict[str, Any]:
        return self._take("delete", request)

    def _take(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append((name, request))
        if self.error:
            raise self.error
        return {
            "Failed": [{"Id": entry["Id"], "Message": "no"} for entry in request["Entries"]] if self.refuses else []
        }


def messages_of(queue: Any) -> LaneMessages:
    return LaneMessages(lambda: queue, URL, clock=lambda: NOW)


@pytest.mark.parametrize(
    ("until", "seconds"),
    [
        (NOW - SECOND, 0),
        (NOW, 0),
        (NOW + MILLISECOND, 1),
        (NOW + SECOND, 1),
        (NOW + 90 * SECOND, 90),
        (NOW + timedelta(hours=11, minutes=40), 42_000),
        (NOW + timedelta(hours=12), 42_000),
    ],
)
def test_a_message_is_hidden_for_whole_seconds_rounded_up(until: Any, seconds: int) -> None:
    queue = Queue()

    messages_of(queue).hide({"a/b": until})

    entries = [{"Id": "0", "ReceiptHandle": "a/b", "VisibilityTimeout": seconds}]
    assert queue.requests == [("hide", {"QueueUrl": URL, "Entries": entries})]


def test_each_message_has_its_own_time_and_id() -> None:
    queue = Queue()

    messages_of(queue).hide({"a": NOW + SECOND, "b": NOW + 2 * SECOND})

    entries = queue.requests[0][1]["Entries"]
    assert [(one["Id"], one["ReceiptHandle"], one["VisibilityTimeout"]) for one in entries] == [
        ("0", "a", 1),
        ("1", "b", 2),
    ]


def test_messages_are_deleted_in_one_call() -> None:
    queue = Queue()

    messages_of(queue).delete(["a", "b"])

    entries = [{"Id": "0", "ReceiptHandle": "a"}, {"Id": "1", "ReceiptHandle": "b"}]
    assert queue.requests == [("delete", {"QueueUrl": URL, "Entries": entries})]


def test_a_call_has_at_most_ten_messages_and_one_that_fails_stops_no_other() -> None:
    queue = Queue(error=FAILURES[1])

    messages_of(queue).delete([str(number) for number in range(21)])
    messages_of(queue).hide({str(number): NOW for number in range(11)})

    sizes = [(name, len(request["Entries"])) for name, request in queue.requests]
    assert sizes == [("delete", 10), ("delete", 10), ("delete", 1), ("hide", 10), ("hide", 1)]
    handles = [entry["ReceiptHandle"] for name, request in queue.requests[:3] for entry in request["Entries"]]
    assert handles == [str(number) for number in range(21)]


def test_no_message_needs_no_call() -> None:
    queue = Queue()

    messages_of(queue).hide({})
    messages_of(queue).delete([])

    assert queue.requests == []


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Each warning, with the error that it names."""
    found: list[tuple[str, str]] = []

    class Log:
        def warning(self, text: str, *, extra: dict[str, str]) -> None:
            found.append((text, extra["error"]))

    monkeypatch.setattr(lane_messages, "logger", Log)
    return found


@pytest.mark.parametrize("error", FAILURES)
def test_a_failed_call_is_logged(error: Exception, warnings: list[tuple[str, str]]) -> None:
    messages_of(Queue(error=error)).delete(["a", "b"])
    messages_of(Queue(error=error)).hide({"a": NOW})

    assert warnings == [("message not deleted", str(error)), ("message visibility not changed", str(error))]


def test_each_refused_entry_is_logged(warnings: list[tuple[str, str]]) -> None:
    messages_of(Queue(refuses=True)).delete(["a", "b"])

    assert warnings == [("message not deleted", "no")] * 2


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        messages_of(Queue(error=ZeroDivisionError())).delete(["a"])


def test_an_invocation_that_changes_no_message_needs_no_client() -> None:
    def needed() -> Any:
        pytest.fail("a client was created")

    untouched = LaneMessages(needed, URL, clock=lambda: NOW)

    untouched.hide({})
    untouched.delete([])
