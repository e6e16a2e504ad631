"""`Batch`: its messages run at once, each within its time, and the batch is answered for each."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local.wait import wait_until
from tidemill.names import SETTLE_RESERVE_SECONDS
from tidemill.worker import message_batch
from tidemill.worker.message_batch import Batch, PutBackError

JOB_TIMEOUT = 60 * SECOND
RESERVE = timedelta(seconds=SETTLE_RESERVE_SECONDS)


def nothing(_message: "Message") -> None:
    """What a message does by default."""


class Message:
    """In place of `MessageRun`. `World.runs` says what a run does."""

    def __init__(self, world: "World", record: dict[str, str], settings: Any, **arguments: Any) -> None:
        self.world, self.settings, self.arguments = world, settings, arguments
        self.name = record["receiptHandle"]
        self.reference = None if self.name in world.unread else f"job {self.name}"
        self.report = SimpleNamespace(put_back_until=world.put_back.get(self.name), ending="unavailable")
        self.deadline: datetime | None = world.deadlines.get(self.name, arguments["deadline"])
        self.finished = False
        self.stray: str | None = None
        world.messages[self.name] = self

    def run(self, _invocation: Any) -> None:
        self.world.runs.get(self.name, nothing)(self)
        self.finished, self.deadline = True, None
        self.world.did.append((self.name, "ran"))

    def expire(self) -> None:
        self.finished = True
        self.stray = self.reference if self.name in self.world.strays else None
        self.world.did.append((self.name, "expired"))
        self.world.expiring.set()
        self.world.expires.get(self.name, nothing)(self)

    def abandon(self) -> None:
        self.world.did.append((self.name, "abandoned"))


@dataclass
class World:
    """What the messages of a batch do, by their names, and what they did."""

    monkeypatch: pytest.MonkeyPatch
    now: datetime = NOW
    left: timedelta = 900 * SECOND
    runs: dict[str, Callable[[Message], object]] = field(default_factory=dict)
    expires: dict[str, Callable[[Message], object]] = field(default_factory=dict)
    deadlines: dict[str, datetime | None] = field(default_factory=dict)
    put_back: dict[str, datetime] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    grouped: Any = None
    configuration: Callable[[], object] = lambda: None
    did: list[tuple[str, str]] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    #: Set once a message has begun to expire.
    expiring: threading.Event = field(default_factory=threading.Event)
    #: The threads of the messages wait for it at the end of a test.
    gate: threading.Event = field(default_factory=threading.Event)

    def batch(self) -> Batch:
        self.monkeypatch.setattr(
            message_batch, "MessageRun", lambda record, settings, **more: Message(self, record, settings, **more)
        )
        context = SimpleNamespace(steady=lambda: self.now, configuration=self.configuration, grouped=self.grouped)
        settings: Any = SimpleNamespace(
            context=context,
            job_timeout=JOB_TIMEOUT,
            version="v",
            can_start_run=lambda left: left >= JOB_TIMEOUT,
        )
        settings.with_grouped_commit = lambda: settings
        invocation: Any = SimpleNamespace(
            aws_request_id="request", get_remaining_time_in_millis=lambda: self.left // MILLISECOND
        )
        return Batch(settings, invocation, None)  # type: ignore[arg-type]  # the messages alone use it

    def expired(self) -> int:
        return sum(what == "expired" for _, what in self.did)

    def process(self, names: str, batch: Batch | None = None) -> tuple[Batch, Any]:
        """The batch of the messages of these names, and its answer."""
        batch = batch or self.batch()
        with batch([{"messageId": f"id {name}", "receiptHandle": name} for name in names], batch.require_done):
            batch.process()
        return batch, [entry["itemIdentifier"] for entry in batch.response()["batchItemFailures"]]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(monkeypatch)
    yield world
    world.gate.set()


def test_each_message_runs_and_the_answer_names_those_that_stay_on_the_queue(world: World) -> None:
    world.put_back = {"b": NOW}

    batch, stay = world.process("abc")

    assert stay == ["id b"]
    assert sorted(world.did) == [(name, what) for name in "abc" for what in ("abandoned", "ran")]
    assert (batch.strays(), list(batch.messages)) == ([], ["a", "b", "c"])


def test_a_batch_whose_messages_all_stay_is_answered_as_any_other(world: World) -> None:
    world.put_back = {"a": NOW, "b": NOW}
    assert world.process("ab")[1] == ["id a", "id b"]


def test_a_message_gets_its_deadline_its_worker_and_its_seat(world: World) -> None:
    world.process("ab")

    given = [message.arguments for message in world.messages.values()]
    assert {(each["deadline"], each["hooks"].worker) for each in given} == {(NOW + JOB_TIMEOUT, "request/v")}
    assert len({id(each["participant"]) for each in given}) == 2


@pytest.mark.parametrize(("left", "runs"), [(JOB_TIMEOUT, True), (JOB_TIMEOUT - MILLISECOND, False)])
def test_without_time_for_a_run_each_message_ends_at_once(world: World, left: timedelta, runs: bool) -> None:
    world.left = left

    world.process("a")

    assert world.did == ([("a", "ran"), ("a", "abandoned")] if runs else [("a", "expired"), ("a", "abandoned")])


def test_all_messages_run_at_the_time_at_which_the_configuration_is_read(world: World) -> None:
    together = threading.Barrier(3, timeout=PATIENCE_SECONDS)
    read: list[int] = []

    def configuration() -> None:
        read.append(1)
        together.wait()

    world.configuration = configuration
    world.runs = dict.fromkeys("ab", lambda _message: together.wait())

    world.process("ab")

    assert len(read) == 1
    assert [what for _, what in world.did] == ["ran", "ran", "abandoned", "abandoned"]


class Changed(threading.Event):
    """Time passes at once, as far as a thread waits. A wait without a bound is a real one, and opens the gate."""

    def __init__(self, world: World, look: Callable[[], bool] = lambda: False) -> None:
        super().__init__()
        self.world, self.look = world, look
        self.waits: list[float | None] = []
        #: What a look finds at each wait.
        self.seen: list[bool] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        self.seen.append(self.look())
        if timeout is None:
            self.world.gate.set()
            return super().wait(PATIENCE_SECONDS)
        self.world.now += timedelta(seconds=timeout)
        return False


def test_each_message_expires_at_its_own_deadline_while_the_others_go_on(world: World) -> None:
    world.runs = dict.fromkeys("abcd", lambda _message: world.gate.wait(PATIENCE_SECONDS))
    world.deadlines = {"a": NOW + 3 * SECOND, "b": NOW + SECOND, "c": NOW + 4 * SECOND, "d": NOW + 5 * SECOND}
    batch = world.batch()
    batch._changed = changed = Changed(world, batch._others_ended.is_set)
    # A message that has moved its deadline does this.
    changed.set()

    world.process("abcd", batch)

    assert changed.waits == [1.0, 2.0, 1.0, 1.0]
    assert changed.seen == [False, False, False, True]
    assert not changed.is_set()
    assert world.did[:4] == [("b", "expired"), ("a", "expired"), ("c", "expired"), ("d", "expired")]
    assert [what for _, what in world.did[4:]] == ["abandoned"] * 4


def test_a_deadline_that_has_passed_expires_its_message_without_a_wait(world: World) -> None:
    world.runs = {"a": lambda _message: world.gate.wait(PATIENCE_SECONDS)}
    world.deadlines = {"a": NOW - SECOND}
    batch = world.batch()
    batch._changed = changed = Changed(world)

    world.process("a", batch)

    assert changed.waits == []
    assert world.did == [("a", "expired"), ("a", "abandoned")]


def test_a_message_without_a_deadline_is_about_to_end_and_is_awaited(world: World) -> None:
    world.deadlines = {"a": None}
    world.runs = {"a": lambda _message: world.gate.wait(PATIENCE_SECONDS)}
    batch = world.batch()
    batch._changed = changed = Changed(world)

    world.process("a", batch)

    assert set(changed.waits) == {None}
    assert world.did == [("a", "ran"), ("a", "abandoned")]


def short_waits(world: World) -> list[float | None]:
    """The bounds of the waits for threads. One with a bound lasts only until each message has begun to expire."""
    bounds: list[float | None] = []
    expiring: list[Any] = []

    def wait(futures: Any, timeout: float | None = None) -> Any:
        bounds.append(timeout)
        if timeout is None:
            return wait_for(futures, PATIENCE_SECONDS)
        expiring.extend(futures)
        wait_until(lambda: world.expired() >= len(expiring), PATIENCE_SECONDS, "the messages to expire")
        return None

    world.monkeypatch.setattr(message_batch, "wait", wait)
    return bounds


def test_a_batch_waits_for_the_end_of_an_expired_message_for_half_of_its_reserve(world: World) -> None:
    bounds = short_waits(world)
    world.left = timedelta(0)
    world.expires = {"a": lambda _message: world.gate.wait(PATIENCE_SECONDS)}

    world.process("ab")

    assert bounds == [SETTLE_RESERVE_SECONDS / 2]
    # The end of one holds up no other.
    assert sorted(world.did[:2]) == [("a", "expired"), ("b", "expired")]


@pytest.mark.parametrize("late", ["runs", "expires"])
def test_the_process_ends_once_all_threads_have_ended_but_those_of_strays(world: World, late: str) -> None:
    bounds = short_waits(world)
    goes_on = threading.Event()
    ended: list[str] = []

    def end(message: Message) -> None:
        goes_on.wait(PATIENCE_SECONDS)
        ended.append(message.name)

    world.strays = ("a",)
    world.deadlines = {"a": NOW, "b": NOW}
    world.runs = {
        "a": lambda _message: world.gate.wait(PATIENCE_SECONDS),
        "b": lambda _message: world.expiring.wait(PATIENCE_SECONDS),
    }
    (world.runs if late == "runs" else world.expires)["b"] = end
    batch, _ = world.process("ab")
    assert [message.name for message in batch.strays()] == ["a"]  # type: ignore[attr-defined]  # a `Message`
    threading.Timer(0.02, goes_on.set).start()

    batch.await_other_threads()

    assert ended == ["b"]
    assert None in bounds
    assert ("b", "ran") in world.did
    assert ("a", "ran") not in world.did


@pytest.mark.parametrize(
    ("left", "deadline", "longest"),
    [
        (900 * SECOND, 50 * SECOND, 50 * SECOND - RESERVE),
        (JOB_TIMEOUT + RESERVE + 7 * SECOND, 50 * SECOND, 7 * SECOND),
        (JOB_TIMEOUT, 50 * SECOND, timedelta(0)),
        (900 * SECOND, timedelta(0), timedelta(0)),
    ],
    ids=["deadline", "invocation", "no time for a run", "deadline has passed"],
)
@pytest.mark.parametrize("alone", [True, False])
def test_a_job_waits_until_it_is_alone_while_a_whole_run_has_time(
    world: World, left: timedelta, deadline: timedelta, longest: timedelta, alone: bool
) -> None:
    waits: list[float] = []
    batch = world.batch()

    def wait(timeout: float) -> bool:
        waits.append(timeout)
        return alone

    batch._others_ended = SimpleNamespace(wait=wait)  # type: ignore[assignment]
    world.left = left

    assert batch._wait_until_alone(NOW + deadline) == (NOW + JOB_TIMEOUT if alone else None)
    assert waits == [longest.total_seconds()]


def test_only_one_job_of_a_batch_waits_until_it_is_alone(world: World) -> None:
    found: dict[str, Any] = {}
    tried = threading.Barrier(2, timeout=PATIENCE_SECONDS)

    def wait_alone(message: Message) -> None:
        tried.wait()
        found[message.name] = message.arguments["hooks"].wait_until_alone(NOW + JOB_TIMEOUT)

    world.runs = dict.fromkeys("ab", wait_alone)

    world.process("abc")

    assert sorted(found.values(), key=str) == [NOW + JOB_TIMEOUT, None]


def test_a_message_asks_whether_a_stray_runs_beside_it(world: World) -> None:
    short_waits(world)
    world.strays = ("a",)
    world.deadlines = {"a": NOW}
    world.runs = {"a": lambda _message: world.gate.wait(PATIENCE_SECONDS)}

    world.process("ab")

    asked = world.messages["b"].arguments["hooks"].stray_beside
    assert asked() is True
    world.messages["a"].stray = None
    assert asked() is False


def test_jobs_that_commit_together_wait_for_those_of_their_batch_that_can_be_read(world: World) -> None:
    did: list[Any] = []
    world.grouped = SimpleNamespace(expect=lambda references: did.append(sorted(references)), leave=did.append)
    world.unread = ("b",)

    world.process("abc")

    assert did[0] == ["job a", "job c"]
    assert sorted(did[1:]) == ["job a", "job c"]


class Log:
    """Notes each error that is logged."""

    def __init__(self) -> None:
        self.errors: list[tuple[str, object]] = []

    def error(self, text: str, *, exc_info: object) -> None:
        self.errors.append((text, exc_info))


@pytest.mark.parametrize("error", [RuntimeError("a fault"), None])
def test_a_fault_of_the_engine_in_a_thread_is_logged(world: World, error: Exception | None) -> None:
    log = Log()
    world.monkeypatch.setattr(message_batch, "logger", lambda: log)
    batch, _ = world.process("a")
    future: Future[None] = Future()
    if error:
        future.set_exception(error)
    else:
        future.set_result(None)
    batch._changed.clear()

    batch._ended(world.messages["a"], future)  # type: ignore[arg-type]  # a `Message`

    assert log.errors == ([("the thread of a message failed", error)] if error else [])
    assert batch._changed.is_set()


@pytest.mark.parametrize("error", [PutBackError("unavailable"), RuntimeError("a fault")])
def test_only_the_failure_of_a_message_that_is_not_put_back_is_logged(world: World, error: Exception) -> None:
    log: Any = Log()
    world.monkeypatch.setattr(message_batch, "logger", lambda: log)
    batch = world.batch()

    batch.failure_handler({"messageId": "a"}, (type(error), error, None))

    assert log.errors == ([] if isinstance(error, PutBackError) else [("record not processed", error)])
