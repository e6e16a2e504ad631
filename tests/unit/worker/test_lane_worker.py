"""What one invocation of a worker does after its batch: put messages back, end a process with strays, and rest."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tidemill.names import Lane
from tidemill.system.process_state import Changes
from tidemill.worker import lane_worker
from tidemill.worker.lane_worker import Worker

LATER = NOW + SECOND


class World:
    """A batch of these messages: by receipt, until when each is put back. `strays` is what each look at them finds."""

    def __init__(
        self, until: dict[str, Any], strays: list[list[str]], level: int = 0, lost: tuple[str, ...] = ()
    ) -> None:
        self.changes = Changes(restored=["locale"], lost=lost)
        self.did: list[Any] = []
        self.until, self.looks, self.level = until, strays, level
        self.times = iter([NOW, NOW + 2 * SECOND])
        self.aws_request_id = "request"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000

    # The batch.
    def __call__(self, records: list[str], handler: Any) -> "World":
        assert handler == self.require_done
        self.did.append(("records", records))
        return self

    def __enter__(self) -> None:
        self.did.append("enter")

    def __exit__(self, *_: object) -> None:
        self.did.append("exit")

    def require_done(self) -> None:
        raise AssertionError

    def process(self) -> None:
        self.did.append("process")

    def job_types(self) -> list[str]:
        return ["mail"]

    # The state of the process.
    def remember(self) -> None:
        self.did.append("remember")

    def is_spoiled(self) -> bool:
        raise AssertionError

    def restore(self) -> Changes:
        self.did.append("restore")
        return self.changes

    @property
    def messages(self) -> dict[str, Any]:
        return {
            receipt: SimpleNamespace(report=SimpleNamespace(put_back_until=until))
            for receipt, until in self.until.items()
        }

    def strays(self) -> list[Any]:
        found = self.looks.pop(0) if self.looks else []
        return [
            SimpleNamespace(stray=name, release_slot=lambda name=name: self.did.append(("slot", name)))
            for name in found
        ]

    def await_other_threads(self) -> None:
        self.did.append("await")

    def response(self) -> dict[str, Any]:
        return {"batchItemFailures": ["a"]}

    # The telemetry.
    def broken_job_files(self, lane: Lane, count: int) -> None:
        self.did.append(("broken", lane, count))

    def process_changed(self, restored: list[str], lost: tuple[str, ...], job_types: list[str]) -> None:
        self.did.append(("changed", restored, lost, job_types))

    def stray_threads(self, lane: Lane, strays: list[str]) -> None:
        self.did.append(("strays", lane, strays))

    def flush(self) -> None:
        self.did.append("flush")

    def rested(self, lane: Lane, *, strain: int, worked: timedelta, rested: timedelta) -> None:
        self.did.append(("rested", lane, strain, worked, rested))

    # The lane.
    def hide(self, until: dict[str, Any]) -> None:
        self.did.append(("hide", until))

    def delete(self, receipts: list[str]) -> None:
        self.did.append(("delete", receipts))

    def work(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr(lane_worker, "Batch", lambda *_, **_named: self)
        context: Any = SimpleNamespace(
            steady=lambda: next(self.times),
            job_types=SimpleNamespace(faults=["broken", "too"]),
            strain_level=lambda: self.level,
            pause=lambda _seconds: None,
        )
        settings: Any = SimpleNamespace(context=context, lane=Lane.BULK, version="v")
        here: Any = self
        worker = Worker(
            settings=settings,
            messages=here,
            end_process=lambda: self.did.append("end process"),
            process_state=here,
            new_telemetry=lambda: here,
        )
        return worker.work({"Records": ["one", "two"]}, here)


BEGUN = ["remember", ("records", ["one", "two"]), "enter", "process", "exit", "restore"]
UNTIL = {"a": LATER, "b": None, "c": NOW, "d": None}
HIDDEN = ("hide", {"a": LATER, "c": NOW})
DELETED = ("delete", ["b", "d"])


@pytest.mark.parametrize(
    ("strays", "ends"),
    [
        ([], [HIDDEN]),
        (
            [["x", "y"], ["x", "y"], ["x"]],
            [HIDDEN, DELETED, "await", ("slot", "x"), ("slot", "y"), "end process"],
        ),
        # Its handler has ended while the others settled.
        ([["x"], [], []], [HIDDEN, DELETED, "await"]),
        ([["x"], ["x"], []], [HIDDEN, DELETED, "await", ("slot", "x")]),
    ],
    ids=["no stray", "strays", "ended meanwhile", "ended at the last look"],
)
def test_a_worker_hides_what_stays_and_ends_its_process_only_with_a_stray(
    strays: list[list[str]], ends: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = strays[0] if strays else []
    world = World(UNTIL, strays)

    assert world.work(monkeypatch) == {"batchItemFailures": ["a"]}

    changed = ("changed", ["locale"], (), ["mail"])
    assert world.did == [*BEGUN, changed, ("broken", Lane.BULK, 2), ("strays", Lane.BULK, first), "flush", *ends]


def test_a_worker_ends_its_process_if_it_cannot_be_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(UNTIL, [], lost=("working directory",))
    world.work(monkeypatch)
    assert world.did[-4:] == [HIDDEN, DELETED, "await", "end process"]


def test_a_worker_under_strain_rests_as_long_as_its_batch_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World({}, [], level=1)
    world.work(monkeypatch)
    assert world.did[-1] == ("rested", Lane.BULK, 1, 2 * SECOND, 2 * SECOND)
