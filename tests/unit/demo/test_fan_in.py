"""The figure of `make figures FIGURE=fan-in`: when it fails, and how it counts the bytes of an item."""

from collections import Counter
from dataclasses import replace

import pytest
from rich.console import Console

from demo.figures.fan_in import report
from demo.figures.fan_in_costs import FanIn
from demo.figures.stream_log import size
from tidemill.domain.states import State
from tidemill.local.wait import WaitError

FOUND = FanIn(
    "batch",
    jobs=100,
    writes=Counter(job=300, page=110, end=9, callback=3),
    looks=[132, 64],
    callbacks=1,
    states=Counter({State.SUCCEEDED: 100}),
    delay_seconds=5,
    allowed_seconds=17.5,
    took_seconds=20,
)


def test_it_prints_the_writes_of_one_job(capsys: pytest.CaptureFixture[str]) -> None:
    report(Console(), [FOUND])
    printed = capsys.readouterr().out
    assert "4.22" in printed
    assert "196, 1.96" in printed


@pytest.mark.parametrize(
    "fault",
    [
        {"callbacks": 0},
        {"callbacks": 2},
        {"states": Counter({State.SUCCEEDED: 99, State.DEAD: 1})},
        {"states": Counter({State.SUCCEEDED: 99})},
        {"delay_seconds": 60},
    ],
)
def test_it_fails_unless_the_callback_came_once_and_in_time(fault: dict[str, object]) -> None:
    with pytest.raises(WaitError):
        report(Console(quiet=True), [FOUND, replace(FOUND, **fault)])  # type: ignore[arg-type]


def test_the_size_of_an_item_counts_names_and_values() -> None:
    item = {
        "pk": {"S": "ab"},
        "members": {"SS": ["x" * 22, "y" * 22]},
        "n": {"N": "1234"},
        "m": {"M": {"a": {"S": "b"}}},
    }
    assert size(item) == (2 + 2) + (7 + 44) + (1 + 4) + (1 + 3 + 1 + 1 + 1)
