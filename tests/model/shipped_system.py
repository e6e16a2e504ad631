"""The shipped code on the simulated DynamoDB. A lane is a list, and a step advances the clock."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from random import Random
from typing import Any, Final, Self
from unittest.mock import patch

import boto3
from botocore.client import BaseClient
from greenlet import getcurrent  # type: ignore[import-untyped]

from tests.model import model_types
from tests.model.model_types import Message
from tests.simulation.deployment import Deployment
from tests.simulation.world.dynamodb import DynamoDB
from tests.simulation.world.dynamodb_table import Record, Schema, Table
from tests.simulation.world.errors import ServiceError
from tests.simulation.world.faults import Faults
from tests.simulation.world.sdk import _client_error, _snake
from tests.simulation.world.stream_mapping import event_record, matches
from tests.simulation.world.task_scheduler import BEGINNING_MS, Killed, Scheduler
from tests.simulation.world.transactions import Transactions
from tests.support.in_memory_owed_work import owing
from tidemill.application.attempt.attempt_context import AttemptContext
from tidemill.application.control.control import Control
from tidemill.application.control.purge import Purger
from tidemill.application.control.redrive import Redriver
from tidemill.application.dispatch import publish
from tidemill.application.dispatch.nudge import Nudger
from tidemill.application.features import submit_features
from tidemill.application.features.attempt_features import gates_of
from tidemill.application.features.publisher_features import publisher
from tidemill.application.job_types import JobTypes
from tidemill.application.operations.reconcile import Reconciler
from tidemill.application.passes import pass_state, table_pass
from tidemill.application.passes.pace import Pace
from tidemill.application.passes.table_pass import TablePasses
from tidemill.application.ports import Refusal
from tidemill.application.waiting import wake
from tidemill.application.waiting.wake import Waker
from tidemill.aws import clients
from tidemill.cdk.events.stream_settings import PATTERNS
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.job_message import DeadLetter, Reference, reference_of
from tidemill.dynamodb.dispatch import stream
from tidemill.dynamodb.dispatch.owed_items import DynamoOwedWork
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.dynamodb.passes.pass_store import DynamoPasses
from tidemill.dynamodb.passes.table_scan import DynamoTableScan
from tidemill.dynamodb.payloads import DynamoPayloads, payload_item
from tidemill.names import PAYLOAD_LOCATION_ATTRIBUTE as LOCATION
from tidemill.names import SETTLE_RESERVE_SECONDS, Lane
from tidemill.powertools.idempotency import insert_once
from tidemill.worker.message_run import WorkerSettings

TENANT: Final = "ada"
EFFECTS: Final = "effects"
#: The beginning of the simulated worlds, rounded down to a unique period.
_BEGINNING: Final = BEGINNING_MS // 1000 - BEGINNING_MS // 1000 % model_types.PERIOD
_MINUTE: Final = timedelta(minutes=1)
_WRITES: Final = frozenset({"put_item", "update_item", "delete_item", "transact_write_items"})
_DRAW: Final = 0.5


class ShippedSystem:
    """A deployment for one example."""

    def __init__(self, job_types: JobTypes) -> None:
        self._scheduler = Scheduler(Random(0))
        faults = Faults(Random(0))
        faults.stopped = True
        dynamodb = DynamoDB(self._scheduler, faults)
        self._services = (dynamodb, Transactions(dynamodb))
        self.table = Deployment().jobs_table()
        self.effects = Table(EFFECTS, Schema(names=("pk",), types=("S",)))
        dynamodb.add(self.table)
        dynamodb.add(self.effects)
        self.table.watchers.append(self._changed)
        #: By document key, the unpublished stream records, and the records published last.
        self.unpublished: dict[str, list[Record]] = {}
        self.published: dict[str, list[Record]] = {}
        #: Messages with the references that were sent.
        self.lane: list[tuple[Message, Reference]] = []
        self.dead_letters: list[Message] = []
        self.at(0)
        #: Names of jobs by id.
        self.names: dict[str, str] = {}
        self._sends_twice = False
        #: Whether the example has ended. Calls raise `Killed` then.
        self.closed = False
        self._tokens = 0
        client: Any = _client()
        client._make_api_call = lambda operation, request: self._call(client, operation, request)
        self.store = DynamoJobStore(
            client,
            table=self.table.name,
            retention=timedelta(seconds=model_types.RETENTION),
            indexes=Indexes(listed=True),
        )
        payloads = DynamoPayloads(client, table=self.table.name, bucket=_no_bucket, new_token=self.new_token)
        self.submit = submit_features.submit(
            store=self.store,
            payloads=owing(payloads),
            job_types=job_types,
            clock=self.clock,
            new_id=self.new_token,
            insert_once=insert_once,
        )
        self.settings = WorkerSettings(
            context=AttemptContext(
                gates=gates_of,
                store=self.store,
                payloads=payloads,
                limits=DynamoLimits(client, table=self.table.name),
                job_types=job_types,
                submit=self.submit,
                clock=self.clock,
                new_token=self.new_token,
                draw=_draw,
                pause=_no_pause,
            ),
            lane=Lane.DEFAULT,
            job_timeout=timedelta(seconds=model_types.LONGEST_RUN - SETTLE_RESERVE_SECONDS),
        )
        owed = DynamoOwedWork(client, table=self.table.name)
        self.publisher = publisher(store=self.store, payloads=payloads, lanes=self, owed=owed, clock=self.clock)
        self.control = Control(store=self.store, clock=self.clock, new_token=self.new_token)
        self.redriver = Redriver(store=self.store, clock=self.clock, new_token=self.new_token)
        self.purger = Purger(store=self.store, clock=self.clock)
        self.late = timedelta(seconds=model_types.LATE)
        self.nudger = Nudger(store=self.store, clock=self.clock, limit=self.late)
        self._passes = TablePasses(
            store=DynamoPasses(client, table=self.table.name, new_token=self.new_token),
            scan=DynamoTableScan(client, table=self.table.name),
            pace=Pace(1_000_000, clock=self.clock, pause=_no_pause),
            clock=self.clock,
            new_token=self.new_token,
            draw=_draw,
        )

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return since_beginning(self._scheduler.now_ms)

    def at(self, seconds: float) -> None:
        """Set the clock."""
        self._scheduler.now_ms = round((_BEGINNING + seconds) * 1000)

    def clock(self) -> datetime:
        return moment(self.now)

    def new_token(self) -> str:
        """A token that begins with the number of the calling worker."""
        self._tokens += 1
        return f"{getattr(getcurrent(), 'number', 0)}/{self._tokens}"

    def publish(self, key: str) -> None:
        """Publish all unpublished changes of a document."""
        self.published[key] = self.unpublished.pop(key, [])
        self.publish_again(key)

    def publish_again(self, key: str) -> None:
        events = [event for event in map(event_record, self.published.get(key, [])) if matches(PATTERNS, event)]
        if events:
            batch = stream.read({"Records": events}, lanes=[Lane.DEFAULT])
            published = self.publisher.publish(batch.changes)
            assert not batch.unreadable
            assert not published.failed_steps

    def sent(self, message: Message) -> Reference:
        return next(reference for said, reference in self.lane if said == message)

    def send_twice(self) -> None:
        """Lose the response to the next write, so that the SDK sends it again."""
        self._sends_twice = True

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[Refusal]:
        """`Lanes`."""
        for dispatch in dispatches:
            reference = reference_of(dispatch.body)
            name = self.names[reference.job_id]
            if isinstance(dispatch.body, DeadLetter):
                self.dead_letters.append(Message(name, reference.generation))
            else:
                message = Message(name, reference.generation, self.now + dispatch.delay_seconds)
                self.lane.append((message, reference))
        return ()

    def wake(self) -> None:
        Waker(store=self.store, clock=self.clock, pause=_no_pause).wake(time_left=_MINUTE)

    def reconcile(self) -> None:
        reconciler = Reconciler(store=self.store, clock=self.clock, limit=self.late)
        self._passes.ask()
        reconciled = reconciler.run(self._passes, time_left=lambda: _MINUTE)
        assert not reconciled.unreadable

    def expire(self) -> None:
        """Delete expired items, as the TTL of DynamoDB does."""
        for key in list(self.table.expired(self._scheduler.now_ms)):
            self.table.put(key, None, now_ms=self._scheduler.now_ms, by_ttl=True)

    def misplaced(self) -> list[str]:
        """Payloads that a job lacks, and payloads that no document names, nor did before its unpublished changes."""
        items = self.table.items.values()
        there = {owner.location for item in items if (owner := payload_item(dict(item)))}
        named = {item[LOCATION]["S"] for item in items if LOCATION in item}
        unpublished = [record.before or {} for records in self.unpublished.values() for record in records]
        return sorted(
            (named - there) | (there - named - {item[LOCATION]["S"] for item in unpublished if LOCATION in item})
        )

    def _changed(self, record: Record) -> None:
        if "state" in (record.after or record.before or {}):
            self.unpublished.setdefault(record.keys["pk"]["S"], []).append(record)

    def _call(self, client: BaseClient, operation: str, request: Mapping[str, Any]) -> Any:
        """Make a call, in the place of `_make_api_call`."""
        if self.closed:
            raise Killed
        name = _snake(operation)
        call: Callable[[Mapping[str, Any]], Any]
        call = next(found for service in self._services if (found := getattr(service, name, None)))
        twice, self._sends_twice = self._sends_twice and name in _WRITES, self._sends_twice and name not in _WRITES
        try:
            if twice:
                call(request)
            return call(request)
        except ServiceError as error:
            raise _client_error(client, error, operation) from None


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(_BEGINNING, UTC) + timedelta(seconds=seconds)


def since_beginning(milliseconds: float) -> float:
    """Seconds."""
    return milliseconds / 1000 - _BEGINNING


@contextmanager
def sequentially() -> Iterator[None]:
    """Run thread pools sequentially, and scan the small table in one segment."""
    with (
        patch.object(publish, "ThreadPoolExecutor", _Sequential),
        patch.object(wake, "ThreadPoolExecutor", _Sequential),
        patch.object(table_pass, "ThreadPoolExecutor", _Sequential),
        patch.object(pass_state, "SEGMENTS", 1),
    ):
        yield


class _Sequential:
    map = staticmethod(map)

    def __init__(self, _workers: int) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        pass


@cache
def _client() -> Any:
    return boto3.client(
        "dynamodb",
        region_name="eu-west-1",
        aws_access_key_id="simulated",
        aws_secret_access_key="simulated",
        config=clients.CONFIG,
    )


def _draw() -> float:
    return _DRAW


def _no_pause(_seconds: float) -> None:
    pass


def _no_bucket() -> Any:
    raise AssertionError("no payload of the model is large enough for S3")
