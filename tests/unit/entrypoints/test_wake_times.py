"""How a call of wake shares its time, which part it does, and which of the calls settles the governor."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tidemill.application.ports import WHOLE, Part
from tidemill.composition import FunctionParts
from tidemill.domain.errors import StoreUnavailableError
from tidemill.entrypoints import wake
from tidemill.names import WAKE_PART, WAKE_PARTS
from tidemill.system import random_draw


class World:
    """All that a call uses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, left: float = 60, governor: Any = None) -> None:
        self.left = left
        self.did: list[Any] = []
        #: For how many seconds each of the two bounded works may go on.
        self.lasts: list[float] = []
        for name in ("owed_runner", "releaser", "waker"):
            monkeypatch.setattr(FunctionParts, name, self)
        monkeypatch.setattr(FunctionParts, "telemetry", lambda _: self)
        monkeypatch.setattr(FunctionParts, "governor", governor)

    def get_remaining_time_in_millis(self) -> int:
        return round(self.left * 1000)

    def _measure(self, in_time: Any) -> None:
        """The time that passes until the work has to end, in whole seconds."""
        began = self.left
        while in_time() and self.left > 0:
            self.left -= 1
        self.lasts.append(began - self.left)
        self.left = began

    def run_pending(self, in_time: Any, *, part: Part) -> str:
        self._measure(in_time)
        return f"owed work {part.number} of {part.count}"

    def release_all(self, *, part: Part, in_time: Any, draw: Any) -> str:
        assert draw is random_draw.draw
        self._measure(in_time)
        return f"released {part.number} of {part.count}"

    def wake(self, *, time_left: timedelta, part: Part) -> str:
        assert time_left == timedelta(seconds=self.left)
        return f"woken {part.number} of {part.count}"

    def note(self, what: Any) -> None:
        self.did.append(what)

    owed_result = released = governed = woken = note

    def flush(self) -> None:
        self.did.append("flush")

    def handle(self, event: Any) -> None:
        wake.handle(event, self)  # type: ignore[arg-type]  # a context has less


def all_of(part: Part) -> list[str]:
    name = f"{part.number} of {part.count}"
    return [f"owed work {name}", "flush", f"released {name}", "flush", f"woken {name}", "flush"]


@pytest.mark.parametrize(
    ("event", "part"),
    [({WAKE_PART: "2", WAKE_PARTS: "4"}, Part(2, 4)), (None, WHOLE), ({}, WHOLE)],
)
def test_a_call_does_its_part_and_one_without_an_event_does_all(
    event: Any, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch)
    world.handle(event)
    assert world.did == all_of(part)


@pytest.mark.parametrize(("left", "lasts"), [(60, [10, 25]), (20, [10, 17]), (4, [4, 1]), (3, [3, 0])])
def test_owed_work_and_releases_leave_time_for_the_scheduled_jobs(
    left: float, lasts: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch, left=left)
    world.handle(None)
    assert world.lasts == lasts


def settles(off: bool, error: Exception | None = None) -> Any:
    def settle() -> str:
        if error:
            raise error
        return "settled"

    return SimpleNamespace(off=off, settle=settle)


@pytest.mark.parametrize(
    ("governor", "number", "governed"),
    [
        (settles(off=False), 0, ["settled"]),
        (settles(off=False), 1, []),
        (settles(off=True), 0, []),
        (settles(off=False, error=StoreUnavailableError()), 0, []),
        (None, 0, []),
    ],
    ids=["first part", "another part", "off", "outage", "no governor"],
)
def test_the_first_part_alone_settles_the_governor(
    governor: Any, number: int, governed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch, governor=governor)
    world.handle({WAKE_PART: number, WAKE_PARTS: 2})
    rest = all_of(Part(number, 2))
    assert world.did == rest[:4] + governed + rest[4:]


def test_a_bug_of_the_governor_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        World(monkeypatch, governor=settles(off=False, error=ZeroDivisionError())).handle(None)
