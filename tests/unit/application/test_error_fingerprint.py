"""Errors of one cause have one name; errors of two causes have two."""

import pytest

from tidemill.application.error_fingerprint import fingerprint


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
