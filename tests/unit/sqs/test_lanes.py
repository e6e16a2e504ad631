"""`SqsLanes.send`: the batches of all lanes at once, the most urgent first, and each failure alone."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Barrier, current_thread
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from tests.support.builders import a_job, letter_for, reference_to
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.ports import Refusal
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.job_message import Reference
from tidemill.names import Lane
from tidemill.sqs import lanes as lanes_module
from tidemill.sqs.lanes import LaneUrls, SqsLanes
from tidemill.sqs.messages import encode

#: In no particular order, as in a setting that a person has edited.
URLS = {lane: LaneUrls(queue=lane, dead_letters=f"{lane} dead") for lane in (Lane.BULK, Lane.CRITICAL, Lane.DEFAULT)}


@dataclass
class Queues:
    """The client of SQS. `answers` holds what a call to a queue does first."""

    answers: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    #: Queue and ids of each call, as it began.
    calls: list[tuple[str, Sequence[str]]] = field(default_factory=list)

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803 - as boto3 has it
        self.calls.append((QueueUrl, [entry["Id"] for entry in Entries]))
        return self.answers.get(QueueUrl, dict)() or {}


class Entries:
    """The client of SQS. Keeps the entries of each call."""

    def __init__(self) -> None:
        self.sent: dict[str, list[dict[str, Any]]] = {}

    def send_message_batch(self, *, QueueUrl: str, Entries: Sequence[Any]) -> Any:  # noqa: N803 - as boto3 has it
        self.sent.setdefault(QueueUrl, []).extend(Entries)
        return {}


def to(lane: Lane, *, dead: bool = False) -> Dispatch:
    job = a_job(lane=lane)
    return Dispatch(lane=lane, body=letter_for(job) if dead else reference_to(job), delay_seconds=0)


def lanes(queues: Queues) -> SqsLanes:
    return SqsLanes(queues, URLS)  # type: ignore[arg-type]  # the one call that it makes


def all_at_once(calls: int) -> Callable[[], None]:
    """Answer only when this many calls wait for an answer."""
    together = Barrier(calls, timeout=PATIENCE_SECONDS)

    def answer() -> None:
        together.wait()

    return answer


def unavailable() -> Any:
    raise ConnectTimeoutError(endpoint_url="https://sqs.invalid")


def missing() -> Any:
    raise ClientError({"Error": {"Code": "AWS.SimpleQueueService.NonExistentQueue"}}, "SendMessageBatch")


def failed(index: int, *, sender_fault: bool) -> dict[str, Any]:
    """An entry of `Failed` in the response of SQS."""
    code, message = "InvalidMessageContents", "it has an invalid character"
    return {"Id": str(index), "SenderFault": sender_fault, "Code": code, "Message": message}


def test_the_lanes_are_sent_at_once() -> None:
    queues = Queues(answers=dict.fromkeys([*Lane, "bulk dead"], all_at_once(4)))

    refused = lanes(queues).send([to(Lane.BULK), to(Lane.DEFAULT), to(Lane.BULK, dead=True), to(Lane.CRITICAL)])

    assert refused == []


def test_the_batches_of_one_lane_are_sent_at_once() -> None:
    queues = Queues(answers={Lane.BULK: all_at_once(10)})

    assert lanes(queues).send([to(Lane.BULK)] * 100) == []
    assert sorted(len(ids) for _, ids in queues.calls) == [10] * 10


def test_the_most_urgent_lane_is_first_and_dead_letters_are_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_module, "POOL_SIZE", 1)
    queues = Queues()

    lanes(queues).send([to(Lane.CRITICAL, dead=True), to(Lane.BULK), to(Lane.DEFAULT), to(Lane.CRITICAL)])

    assert queues.calls == [("critical", ["3"]), ("default", ["2"]), ("bulk", ["1"]), ("critical dead", ["0"])]


def test_a_lane_that_does_not_respond_keeps_only_its_own_messages() -> None:
    queues = Queues(answers={Lane.CRITICAL: unavailable})

    refused = lanes(queues).send([to(lane) for lane in (Lane.BULK, Lane.CRITICAL, Lane.DEFAULT, Lane.CRITICAL)])

    assert {(refusal.index, refusal.sender_fault) for refusal in refused} == {(1, False), (3, False)}
    assert {url for url, _ in queues.calls} == set(Lane)


def test_the_queue_of_one_lane_that_does_not_exist_refuses_only_its_own_messages() -> None:
    queues = Queues(answers={Lane.CRITICAL: missing})

    (refusal,) = lanes(queues).send([to(lane) for lane in (Lane.CRITICAL, Lane.DEFAULT, Lane.BULK)])

    assert (refusal.index, refusal.sender_fault) == (0, True)
    assert "NonExistentQueue" in refusal.error
    assert {url for url, _ in queues.calls} == set(Lane)


def test_entries_that_sqs_refuses_are_returned_with_their_index_and_whose_fault_it_was() -> None:
    queues = Queues(
        answers={
            Lane.DEFAULT: lambda: {"Failed": [failed(1, sender_fault=False)]},
            Lane.BULK: lambda: {"Failed": [failed(2, sender_fault=True), failed(3, sender_fault=False)]},
        }
    )

    refused = lanes(queues).send([to(lane) for lane in (Lane.DEFAULT, Lane.DEFAULT, Lane.BULK, Lane.BULK)])

    error = "InvalidMessageContents: it has an invalid character"
    assert set(refused) == {
        Refusal(1, error=error),
        Refusal(2, sender_fault=True, error=error),
        Refusal(3, error=error),
    }


def test_without_messages_no_call_is_made() -> None:
    queues = Queues()

    assert lanes(queues).send([]) == []
    assert queues.calls == []


@pytest.mark.parametrize("epochs", [{}, {"epoch": 2}])
def test_an_entry_has_its_body_its_delay_and_the_group_of_its_tenant(epochs: dict[str, int]) -> None:
    client: Any = Entries()
    body = Reference(tenant="acme", job_id="j", generation=3, trace="t")
    # A stage may have only some of the lanes.
    urls = {Lane.BULK: URLS[Lane.BULK]}

    SqsLanes(client, urls, **epochs).send([Dispatch(lane=Lane.BULK, body=body, delay_seconds=7)])

    assert client.sent == {
        "bulk": [
            {
                "Id": "0",
                "MessageBody": encode(body, **epochs),
                "DelaySeconds": 7,
                # The same in each version of the code, or a tenant has two turns while one is deployed.
                "MessageGroupId": "822b33ad87c148a0a20a5ba7cd5ebcaa",
            }
        ]
    }


def test_no_more_calls_are_made_at_once_than_the_client_has_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_module, "POOL_SIZE", 2)
    threads: set[str] = set()

    def answer() -> None:
        threads.add(current_thread().name)
        # A thread that ends at once would serve all calls alone.
        time.sleep(0.005)

    assert lanes(Queues(answers={Lane.BULK: answer})).send([to(Lane.BULK)] * 60) == []
    assert len(threads) <= 2
