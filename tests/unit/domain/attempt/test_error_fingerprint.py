"""Errors of one cause have one name; errors of two causes have two."""

from typing import Any

import pytest

from tests.support.builders import a_job, an_error
from tidemill.domain.attempt.error_fingerprint import fingerprint, job_fingerprint
from tidemill.domain.job import DeathReason


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", "E"),
        ("timed out after 12.5 s", "E: timed out after <n> s"),
        ("user 'ann' has no row in \"t\"", "E: user '…' has no row in '…'"),
        ("order 01a1faf4-3139-7af6-9982-09538b03026f is gone", "E: order <id> is gone"),
        ("key deadbeef00 is gone, and so is facade", "E: key <id> is gone, and so is facade"),
        ("no route to 10.0.0.7:443", "E: no route to <n>"),
        ("first line 7\nsecond line", "E: first line <n>"),
    ],
)
def test_what_differs_from_job_to_job_is_replaced(message: str, expected: str) -> None:
    assert fingerprint("E", message) == expected


def test_a_long_message_is_cut() -> None:
    assert len(fingerprint("E", "word " * 100)) == len("E: ") + 120


def test_two_causes_differ() -> None:
    assert fingerprint("E", "disk full") != fingerprint("E", "disk slow")


@pytest.mark.parametrize(("length", "cut"), [(119, False), (120, False), (121, True)])
def test_a_message_of_120_characters_stays_whole(length: int, cut: bool) -> None:
    shown = "x" * 119 + "…" if cut else "x" * length
    assert fingerprint("E", "x" * length) == f"E: {shown}"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"death": DeathReason.DEADLINE}, str(DeathReason.DEADLINE)),
        ({"errors": (an_error(message="first"), an_error(error_class="E", message="last 7"))}, "E: last <n>"),
        ({"errors": (an_error(message="a"),), "death": DeathReason.EXHAUSTED}, "ValueError: a"),
        ({"errors": (an_error(message="a"),), "death": DeathReason.UNDELIVERABLE}, "undeliverable"),
    ],
)
def test_a_job_is_named_by_its_last_error_or_the_reason_of_its_death(changes: dict[str, Any], expected: str) -> None:
    assert job_fingerprint(a_job(**changes)) == expected
