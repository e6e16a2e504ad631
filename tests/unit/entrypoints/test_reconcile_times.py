"""How a call of reconcile shares its time, and when it goes on with another pass."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tidemill import composition
from tidemill.entrypoints import reconcile
from tidemill.names import CONTINUE


class World:
    """All that a call uses. Its passes end as `asked` says, one after another; None: a pass did not end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *asked: bool | None, left: float = 100) -> None:
        self.asked = list(asked)
        self.left = left
        self.did: list[str] = []
        self.in_time: bool | None = None
        self.completed = True
        for owner, name in [
            (composition.FunctionParts, "telemetry"),
            (reconcile, "table_passes"),
            (reconcile, "reconciler"),
        ]:
            monkeypatch.setattr(owner, name, lambda *_: self)
        monkeypatch.setattr(composition.FunctionParts, "owed_runner", self)
        monkeypatch.setattr(reconcile, "drifted", lambda: 3)
        monkeypatch.setattr(reconcile, "dead_letter_queues", lambda: ["queue"])

    def get_remaining_time_in_millis(self) -> int:
        return int(self.left * 1000)

    def ask(self) -> None:
        self.did.append("ask")

    def compared(self, drifted: int) -> None:
        self.did.append(f"compared {drifted}")

    def flush(self) -> None:
        self.did.append("flush")

    def run_pending(self, in_time: Any) -> str:
        self.in_time = in_time()
        return "owed work"

    def owed_result(self, result: str) -> None:
        self.did.append(result)

    def sweep(self, queues: list[str], *, time_left: Any) -> str:
        assert time_left() == timedelta(seconds=self.left)
        return f"swept {queues[0]}"

    def run(self, passes: Any, *, time_left: Any) -> Any:
        assert passes is self
        assert time_left() == timedelta(seconds=self.left)
        asked = self.asked.pop(0)
        done = (
            None
            if asked is None
            else SimpleNamespace(completed=self.completed, table_pass=SimpleNamespace(asked=asked))
        )
        return SimpleNamespace(progress=done)

    def reconciled(self, what: Any) -> None:
        self.did.append(what if isinstance(what, str) else "pass")


@pytest.mark.parametrize(("left", "in_time"), [(30, False), (30.001, True)])
def test_owed_work_begins_only_while_half_a_minute_is_left_for_the_rest(
    left: float, in_time: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch, None, left=left)
    reconcile.handle({CONTINUE: True}, world)  # type: ignore[arg-type]  # a context has less
    assert world.in_time is in_time


@pytest.mark.parametrize(
    ("event", "asks"),
    [({CONTINUE: True}, []), ({}, ["ask"]), ({"alarm": 1}, ["ask"]), (None, ["ask"]), ([CONTINUE], ["ask"])],
)
@pytest.mark.parametrize(("asked", "passes"), [([None], 1), ([False], 1), ([True, True, False], 3), ([True, None], 2)])
def test_any_call_but_that_of_the_scheduler_asks_for_a_pass_and_goes_on_while_one_is_asked_for(
    event: Any, asks: list[str], asked: list[bool | None], passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch, *asked)
    reconcile.handle(event, world)  # type: ignore[arg-type]  # a context has less
    rest = ["compared 3", "flush", "owed work", "swept queue", "flush", *["pass"] * passes, "flush"]
    assert world.did == asks + rest


def test_a_pass_that_another_call_asked_for_waits_for_the_end_of_the_open_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, True)
    world.completed = False
    reconcile.handle({CONTINUE: True}, world)  # type: ignore[arg-type]  # a context has less
    assert world.did[-2:] == ["pass", "flush"]
    assert world.asked == []
