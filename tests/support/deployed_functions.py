"""The Lambda handlers submit, query, publish and work, with moto's DynamoDB, stream and SQS between them."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final, NoReturn

import pytest

from tests.support.builders import INVOCATION, TENANT
from tests.support.faulty_client import FaultyClient
from tests.support.http_events import ROLE, Answer, call
from tests.support.job_tables import Table, client
from tests.support.jobs.scripted import Script, script
from tests.support.statements import statements_over
from tidemill import composition
from tidemill.aws import clients
from tidemill.domain.job import Job
from tidemill.entrypoints import publish, query, submit, wake, work
from tidemill.names import (
    DEBOUNCE_ATTRIBUTE,
    DISPATCHED_STATES,
    GROUP_ATTRIBUTE,
    GROUP_STATES,
    PAYLOAD_LOCATION_ATTRIBUTE,
    REPLACEABLE_STATES,
    STATE_ATTRIBUTE,
    TERMINAL_STATES,
    Env,
    Lane,
)
from tidemill.system import clock, own_process

JOB_TIMEOUT: Final = timedelta(seconds=5)
#: More rounds of publish and work than any test needs.
MOST_ROUNDS: Final = 1_000
Event = Mapping[str, Any]
_numbers = count(1)


class ProcessEndedError(BaseException):
    """A worker ended its process. Then its mapping deletes nothing."""


@dataclass(frozen=True)
class Context:
    """The Lambda context, as far as the handlers read it."""

    remaining: timedelta = INVOCATION
    aws_request_id: str = "request"

    def get_remaining_time_in_millis(self) -> int:
        return round(self.remaining.total_seconds() * 1000)


class Mill:
    """Submits over HTTP, passes the stream to publish and the queue to work, and reads the results."""

    def __init__(self, table: Table, faulty: FaultyClient, queue: str, dead_letters: str) -> None:
        self.table = table
        self.client = faulty
        self.queue = queue
        self.dead_letters = dead_letters
        self.script = script
        #: How often the code under test called AWS, by `service.Operation`.
        self.calls: Counter[str] = Counter()
        #: The entries of ChangeMessageVisibilityBatch with which workers put messages back.
        self.hidden: list[Mapping[str, Any]] = []
        #: How far the clock of the functions is ahead of the machine's. The queues of moto keep the machine's time.
        self.late = timedelta(0)
        self._stopped_at: datetime | None = None
        self._sequence = ""

    def now(self) -> datetime:
        return (self._stopped_at or clock_now()) + self.late

    def stop_clock(self) -> None:
        """Let only `late` move the clock of the functions from now on, so that no job is too slow for its timeout."""
        self._stopped_at = clock_now()

    def read_configuration(self) -> None:
        """The functions read it now, and no later call counts a read: one serves all calls of five seconds."""
        self.stop_clock()
        composition.parts().configuration.current()
        self.calls.clear()

    def post(
        self, payload: Any = None, *, job_type: str = "test.scripted", key: str | None = None, **fields: Any
    ) -> Answer:
        return self.post_text(json.dumps({"type": job_type, "payload": payload or {}, **fields}), key=key)

    def post_text(
        self,
        body: str | None,
        *,
        key: str | None = None,
        media_type: str = "application/json",
        length_bytes: int | None = None,
        **changes: Any,
    ) -> Answer:
        sent = {"content-type": media_type, "idempotency-key": key, "content-length": length_bytes}
        headers = {name: str(value) for name, value in sent.items() if value is not None}
        return call(submit, "POST", "/jobs", body=body, headers=headers, **changes)

    def post_batch(self, jobs: Sequence[Mapping[str, Any]]) -> Answer:
        headers = {"content-type": "application/json"}
        return call(submit, "POST", "/jobs/batch", body=json.dumps({"jobs": jobs}), headers=headers)

    def get(self, job_id: str, *, iam: Mapping[str, Any] | None = ROLE) -> Answer:
        return call(query, "GET", f"/jobs/{job_id}", iam=iam)

    def accepted(self, payload: Any = None, *, job_type: str = "test.scripted", **fields: Any) -> str:
        answer = self.post(payload, job_type=job_type, **fields)
        assert answer.status == 202
        return str(answer.body["id"])

    def job(self, job_id: str) -> Job:
        found = composition.parts().store.get(TENANT, job_id)
        assert found is not None
        return found

    def stored(self) -> int:
        return int(self.table.client.scan(TableName=self.table.name, Select="COUNT")["Count"])

    def records(self) -> list[dict[str, Any]]:
        """The records after the last published one that pass the filter of the event source mapping."""
        streams = client("dynamodbstreams")
        arn = self.table.client.describe_table(TableName=self.table.name)["Table"]["LatestStreamArn"]
        (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        after: Any = (
            {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": self._sequence}
            if self._sequence
            else {"ShardIteratorType": "TRIM_HORIZON"}
        )
        iterator = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], **after)["ShardIterator"]
        records = streams.get_records(ShardIterator=iterator)["Records"]
        for record in records:
            # Lambda passes the time as a number.
            written_at = record["dynamodb"]["ApproximateCreationDateTime"]
            record["dynamodb"]["ApproximateCreationDateTime"] = written_at.timestamp()
        return [record for record in records if _passes(record)]

    def publish(self, records: Sequence[Mapping[str, Any]] | None = None) -> list[str]:
        """Invoke publish with the records. Returns the sequence numbers of those that failed."""
        owed = self.records() if records is None else records
        answer = publish.handle({"Records": owed}, Context())
        assert set(answer) == {"batchItemFailures"}
        failed = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        if owed and not failed:
            self._sequence = owed[-1]["dynamodb"]["SequenceNumber"]
        return failed

    def wake(self) -> None:
        """A minute's call of wake."""
        wake.handle({}, Context())

    def receive(self, queue: str | None = None) -> Event:
        """The event with which the mapping of the lane invokes a worker."""
        answer = client("sqs").receive_message(
            QueueUrl=queue or self.queue, MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"]
        )
        return {
            "Records": [
                {
                    "messageId": message["MessageId"],
                    "receiptHandle": message["ReceiptHandle"],
                    "body": message["Body"],
                    "attributes": message["Attributes"],
                    "messageAttributes": {},
                    "eventSource": "aws:sqs",
                }
                for message in answer.get("Messages", [])
            ]
        }

    def work(self, event: Event, context: Context | None = None) -> list[str]:
        """Run a batch and, as the mapping does, delete what it does not keep. Returns the ids of the kept messages.

        Raises `ProcessEndedError`.
        """
        answer = work.handle(event, context or Context())
        assert set(answer) == {"batchItemFailures"}
        kept = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        # With an empty or unknown id, Lambda puts back the whole batch.
        assert set(kept) <= {record["messageId"] for record in event["Records"]}
        done = [record["receiptHandle"] for record in event["Records"] if record["messageId"] not in kept]
        if done:
            entries: Any = [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(done)]
            client("sqs").delete_message_batch(QueueUrl=self.queue, Entries=entries)
        return kept

    def event(self, *bodies: str) -> Event:
        """Send the bodies to the lane, and receive them."""
        for body in bodies:
            client("sqs").send_message(QueueUrl=self.queue, MessageBody=body)
        return self.receive()

    def run(self) -> None:
        """Publish and work until the stream and the lane are empty."""
        for _ in range(MOST_ROUNDS):
            owed = self.records()
            assert self.publish(owed) == []
            event = self.receive()
            if event["Records"]:
                self.work(event)
            elif not owed:
                return
        raise AssertionError(f"the stream or the lane is not empty after {MOST_ROUNDS} rounds")

    def depth(self, queue: str) -> int:
        names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        attributes = client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
        return sum(int(value) for value in attributes.values())


def _passes(record: Mapping[str, Any]) -> bool:
    """Whether the record passes the filter of the event source mapping."""
    images = record["dynamodb"]
    before, after = images.get("OldImage", {}), images.get("NewImage", {})
    state = after.get(STATE_ATTRIBUTE, {}).get("S")
    return (
        state in DISPATCHED_STATES
        or (state in GROUP_STATES and GROUP_ATTRIBUTE in after)
        or (before.get(STATE_ATTRIBUTE, {}).get("S") in TERMINAL_STATES and PAYLOAD_LOCATION_ATTRIBUTE in before)
        or (state in REPLACEABLE_STATES and {PAYLOAD_LOCATION_ATTRIBUTE, DEBOUNCE_ATTRIBUTE} <= before.keys())
    )


def _end_process() -> NoReturn:
    raise ProcessEndedError


clock_now = clock.now


@contextmanager
def mill_on(table: Table, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mill]:
    """The functions with the queues of a new lane. moto must be on."""
    sqs = client("sqs")
    number = next(_numbers)
    queue, dead_letters = (sqs.create_queue(QueueName=f"{name}-{number}")["QueueUrl"] for name in ("lane", "letters"))
    faulty = FaultyClient(table.client)
    faulty.batch_execute_statement = statements_over(faulty)  # type: ignore[attr-defined]  # a proxy
    mill = Mill(table, faulty, queue, dead_letters)
    mill.script.handler = Script().handler
    environment = {
        Env.STAGE: "test",
        Env.JOBS_TABLE: table.name,
        Env.LANES: json.dumps({Lane.DEFAULT: {"queue": queue, "dead_letters": dead_letters}}),
        Env.JOB_PACKAGES: "tests.support.jobs",
        Env.JOB_TIMEOUT_SECONDS: str(JOB_TIMEOUT.total_seconds()),
        Env.RETENTION_DAYS: "30",
        Env.LISTING: "true",
        Env.INDEX_SHARDS: "4",
        Env.FILES_BUCKET: "files",
        Env.JWT: "",
    }
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(clients, "dynamodb", lambda: faulty)
    monkeypatch.setattr(clients, "sqs", lambda: sqs)
    monkeypatch.setattr(clients, "sqs_hints", lambda: sqs)
    monkeypatch.setattr(clock, "now", mill.now)
    monkeypatch.setattr(clock, "steady", mill.now)
    monkeypatch.setattr(own_process, "end", _end_process)

    def count_call(event_name: str, params: Mapping[str, Any], **_rest: Any) -> None:
        _, service, operation = event_name.split(".")
        mill.calls[f"{service}.{operation}"] += 1
        if operation == "ChangeMessageVisibilityBatch" and (body := json.loads(params["body"]))["QueueUrl"] == queue:
            mill.hidden.extend(body["Entries"])

    watched = (table.client, sqs)
    for each in watched:
        each.meta.events.register("before-call", count_call)
    forget()
    try:
        yield mill
    finally:
        for each in watched:
            each.meta.events.unregister("before-call", count_call)
        forget()


def forget() -> None:
    """Empty the caches of the composition root and of work, as in a new execution environment."""
    for root in (composition, work):
        for built in vars(root).values():
            if hasattr(built, "cache_clear"):
                built.cache_clear()


__all__ = ["INVOCATION", "JOB_TIMEOUT", "TENANT", "Context", "Event", "Mill", "ProcessEndedError", "forget", "mill_on"]
