"""Encoding and decoding of queue messages: ASCII, ids only, and safe against malformed bodies."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import NOW, a_job, letter_for, reference_to
from tidemill.domain.dispatch.job_message import DeadLetter, FirstRun, Reference, reference_of
from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError, OtherEpochError
from tidemill.sqs.messages import decode, encode

REFERENCES = st.builds(Reference, generation=st.integers())
LETTERS = st.builds(DeadLetter, reference=REFERENCES, attempts=st.integers())
GOOD = json.loads(encode(letter_for(a_job())))


@given(REFERENCES | LETTERS)
def test_a_decoded_message_equals_the_encoded_one(body: Reference | DeadLetter) -> None:
    wire = encode(body)

    assert decode(wire) == body
    assert wire.isascii()
    assert wire.isprintable()


def test_a_message_carries_no_payload() -> None:
    assert "secret" not in encode(reference_to(a_job(payload='{"secret":1}')))


@given(st.text() | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps))
def test_any_other_text_is_malformed(text: str) -> None:
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
        {"epoch": "first"},
        {"epoch": []},
        {"letter": []},
        {"letter": "letter"},
        {"letter": {"type": "test.job"}},
        {"letter": GOOD["letter"] | {"attempts": "many"}},
        {"letter": GOOD["letter"] | {"attempts": float("inf")}},
    ],
    ids=str,
)
def test_a_message_with_one_wrong_field_is_malformed(change: dict[str, Any]) -> None:
    wire = {name: value for name, value in (GOOD | change).items() if value is not None}

    with pytest.raises(MalformedDocumentError):
        decode(json.dumps(wire))


@pytest.mark.parametrize("text", ["", "{}", "[" * 100_000, '{"schema":1e999}', "null", "\ud800"], ids=repr)
def test_unusual_json_is_malformed(text: str) -> None:
    with pytest.raises(MalformedDocumentError):
        decode(text)


def test_a_message_of_a_newer_schema_raises_newer_schema_error() -> None:
    with pytest.raises(NewerSchemaError, match="a message of schema 2; this code reads 1") as refused:
        decode(json.dumps(GOOD | {"schema": 2, "tenant": None}))

    assert (refused.value.schema, refused.value.known) == (2, 1)


@pytest.mark.parametrize(("sent_in", "own", "later"), [(0, 1, False), (2, 1, True), (1, 0, True)])
def test_a_message_of_another_epoch_raises_other_epoch_error(sent_in: int, own: int, later: bool) -> None:
    letter = letter_for(a_job())
    wire = encode(letter, epoch=sent_in)

    with pytest.raises(OtherEpochError, match=f"a message of epoch {sent_in}; this function has epoch {own}") as other:
        decode(wire, epoch=own)

    assert other.value.later is later
    assert decode(wire, epoch=sent_in) == letter


def test_a_message_of_an_installation_that_was_never_restored_has_no_epoch() -> None:
    assert "epoch" not in encode(letter_for(a_job()))


WIRE = '"tenant":"acme","id":"j","generation":3,"trace":"t"'
FIRST = Reference(tenant="acme", job_id="j", generation=3, trace="t", first_run=FirstRun(type="mail", due=NOW))
PLAIN = Reference(tenant="acme", job_id="j", generation=3, trace="t")
LETTER = DeadLetter(reference=PLAIN, type="mail", death="permanent", error_class="ValueError", attempts=2)


@pytest.mark.parametrize(
    ("body", "epoch", "rest"),
    [
        (PLAIN, 0, ""),
        (PLAIN, 4, ',"epoch":4'),
        (FIRST, 0, f',"first":{{"type":"mail","due":{int(NOW.timestamp() * 1000)}}}'),
        (LETTER, 0, ',"letter":{"type":"mail","death":"permanent","error_class":"ValueError","attempts":2}'),
    ],
    ids=["reference", "restored", "first run", "dead-letter message"],
)
def test_the_versions_of_the_code_agree_on_the_form_of_a_message(
    body: Reference | DeadLetter, epoch: int, rest: str
) -> None:
    wire = f'{{"schema":1,{WIRE}{rest}}}'

    assert encode(body, epoch=epoch) == wire
    read = decode(wire, epoch=epoch)
    assert read == body
    assert reference_of(read).first_run == reference_of(body).first_run


def test_a_message_without_an_epoch_is_of_an_installation_that_was_never_restored() -> None:
    assert decode(encode(PLAIN)) == decode(encode(PLAIN, epoch=0), epoch=0) == PLAIN
