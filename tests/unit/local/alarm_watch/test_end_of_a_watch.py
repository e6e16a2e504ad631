"""A watch ends with its emulator, and not while the emulator is only slow."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from tidemill.local import emulator, processes
from tidemill.local.alarm_watch import __main__ as command


class _Watch:
    """The emulator does not answer its second evaluation."""

    def __init__(self) -> None:
        self.evaluations = 0

    def tick(self, _: float) -> Iterator[str]:
        self.evaluations += 1
        if self.evaluations == 2:
            raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
        yield f"evaluation {self.evaluations}"


def test_a_watch_goes_on_while_a_busy_emulator_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watch: Any = _Watch()
    monkeypatch.setattr(emulator, "find", lambda _: None)
    monkeypatch.setattr(processes, "emulators", lambda _: [1] if watch.evaluations < 3 else [])
    command.evaluate_until_ended(watch, tmp_path, minute_seconds=0.01)

    first, second, third = capsys.readouterr().out.splitlines()
    assert (first, third) == ("evaluation 1", "evaluation 3")
    assert second.startswith("not evaluated: Read timeout")
