"""A cursor decodes to its position, for its own tenant and filters only."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW
from tidemill.dynamodb.listing_entries import Position
from tidemill.http.cursors import CursorError, Cursors

CURSORS = Cursors(b"a key")
BOUND_TO = ("tenant", "dead", None)
CURSOR = CURSORS.write(Position(NOW, "an-id"), bound_to=BOUND_TO)

moments = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(st.builds(Position, moments, st.text(max_size=36)), st.lists(st.none() | st.text()))
def test_a_cursor_decodes_to_its_position(position: Position, bound_to: list[str | None]) -> None:
    assert CURSORS.read(CURSORS.write(position, bound_to=bound_to), bound_to=bound_to) == position


def test_a_cursor_is_safe_in_a_url_and_hides_its_tenant() -> None:
    assert CURSOR.replace("-", "").replace("_", "").isalnum()
    assert CURSOR.isascii()
    assert len(CURSOR) < 150
    assert CURSORS.write(Position(NOW, "an-id"), bound_to=("t" * 1000,)) != CURSOR


def test_a_cursor_of_a_former_key_is_read_and_new_ones_are_written_with_the_first_key() -> None:
    rotated = Cursors(b"a new key", b"a key")
    assert rotated.read(CURSOR, bound_to=BOUND_TO) == Position(NOW, "an-id")
    written = rotated.write(Position(NOW, "an-id"), bound_to=BOUND_TO)
    assert written == Cursors(b"a new key").write(Position(NOW, "an-id"), bound_to=BOUND_TO) != CURSOR


@pytest.mark.parametrize(
    "bound_to",
    [("another", "dead", None), ("tenant", "queued", None), ("tenant", "dead", "None"), ("tenant", "dead"), ()],
)
def test_a_cursor_is_refused_with_another_tenant_or_other_filters(bound_to: tuple[str | None, ...]) -> None:
    with pytest.raises(CursorError):
        CURSORS.read(CURSOR, bound_to=bound_to)


def test_a_cursor_signed_with_another_key_is_refused() -> None:
    with pytest.raises(CursorError):
        Cursors(b"another key").read(CURSOR, bound_to=BOUND_TO)


@pytest.mark.parametrize("index", range(len(CURSOR)))
def test_a_cursor_with_any_changed_character_is_refused(index: int) -> None:
    # The neighbour in the alphabet differs in the last bit only, and a lenient Base64 decoder ignores that bit.
    for other in {chr(ord(CURSOR[index]) ^ 1), "A" if CURSOR[index] != "A" else "B"}:
        with pytest.raises(CursorError):
            CURSORS.read(CURSOR[:index] + other + CURSOR[index + 1 :], bound_to=BOUND_TO)


@pytest.mark.parametrize(
    "cursor", ["", "A", "====", CURSOR[:-1], CURSOR + "=", CURSOR + "AAAA", f" {CURSOR}", "é" * 44, "\x00"]
)
def test_a_string_that_was_never_issued_is_refused(cursor: str) -> None:
    with pytest.raises(CursorError):
        CURSORS.read(cursor, bound_to=BOUND_TO)


def test_positions_are_ordered_by_time_and_then_by_id() -> None:
    earlier = Position(NOW - timedelta(milliseconds=1), "z")
    assert sorted([Position(NOW, "b"), Position(NOW), earlier, Position(NOW, "a")]) == [
        earlier,
        Position(NOW),
        Position(NOW, "a"),
        Position(NOW, "b"),
    ]
