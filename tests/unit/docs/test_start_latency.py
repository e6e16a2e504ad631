"""The page of performance shows the model of the start latency, which meets its goal."""

import re
from pathlib import Path

from tests.benchmarks import start_latency
from tests.benchmarks.start_latency import AT_ONCE, BY_STREAM, GOAL_MS, total_ms

PERFORMANCE = (Path(__file__).parents[3] / "docs" / "performance.md").read_text()


def test_the_page_shows_what_its_command_prints() -> None:
    (shown,) = re.findall(
        r"^```\npython -m tests\.benchmarks\.start_latency\n```\n\n((?:\|.+\n)+)", PERFORMANCE, re.MULTILINE
    )

    assert shown == start_latency.markdown()


def test_a_first_message_at_once_meets_the_goal_and_the_stream_does_not() -> None:
    assert total_ms(AT_ONCE) <= GOAL_MS < total_ms(BY_STREAM)


def test_each_hop_names_a_page_or_says_that_it_is_an_assumption() -> None:
    for hop in (*start_latency.REQUEST, *AT_ONCE, *BY_STREAM):
        assert hop.source.startswith(("https://", "assumption"))
        assert hop.low_ms < hop.median_ms < hop.high_ms
