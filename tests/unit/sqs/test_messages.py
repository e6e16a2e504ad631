"""The wire form of messages: ASCII, ids only, and safe against rubbish."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import a_job, letter_for, reference_to
from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError
from tidemill.domain.job import DeadLetter, Reference
from tidemill.sqs.messages import decode, encode

REFERENCES = st.builds(Reference, generation=st.integers())
LETTERS = st.builds(DeadLetter, reference=REFERENCES, attempts=st.integers())
GOOD = json.loads(encode(letter_for(a_job())))


@given(REFERENCES | LETTERS)
def test_a_message_comes_back_from_the_wire_as_it_went(body: Reference | DeadLetter) -> None:
    wire = encode(body)

    assert decode(wire) == body
    assert wire.isascii()
    assert wire.isprintable()


def test_a_message_carries_no_payload() -> None:
    assert "secret" not in encode(reference_to(a_job(payload='{"secret":1}')))


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_a_malformed_message_is_refused(text: str) -> None:
    with pytest.raises(MalformedDocumentError):
        decode(text)


@pytest.mark.parametrize(
    "change",
    [
        *({name: None} for name in GOOD if name != "letter"),
        {"schema": "one"},
        {"schema": []},
        {"generation": []},
        {"generation": "first"},
        {"generation": float("nan")},
        {"generation": float("inf")},
        {"letter": []},
        {"letter": "letter"},
        {"letter": {"type": "test.job"}},
        {"letter": GOOD["letter"] | {"attempts": "many"}},
        {"letter": GOOD["letter"] | {"attempts": float("inf")}},
    ],
    ids=str,
)
def test_a_message_that_is_nearly_one_of_ours_is_refused_as_rubbish(change: dict[str, Any]) -> None:
    wire = {name: value for name, value in (GOOD | change).items() if value is not None}

    with pytest.raises(MalformedDocumentError):
        decode(json.dumps(wire))


@pytest.mark.parametrize("text", ["", "{}", "[" * 100_000, '{"schema":1e999}', "null", "\ud800"], ids=repr)
def test_odd_texts_are_refused_as_rubbish(text: str) -> None:
    with pytest.raises(MalformedDocumentError):
        decode(text)


def test_a_message_of_a_newer_schema_is_refused_as_such() -> None:
    with pytest.raises(NewerSchemaError, match="a message of schema 2; this code reads 1") as refused:
        decode(json.dumps(GOOD | {"schema": 2, "tenant": None}))

    assert (refused.value.schema, refused.value.known) == (2, 1)
