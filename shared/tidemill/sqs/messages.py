"""Encodes and decodes the bodies of queue messages: ASCII JSON with ids only, since SQS rejects some characters."""

import json
from typing import Final

from tidemill.domain.dispatch.job_message import DeadLetter, FirstRun, Reference, reference_of
from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError, OtherEpochError
from tidemill.domain.time_constants import EPOCH, MILLISECOND, epoch_milliseconds

SCHEMA_VERSION: Final = 1


def encode(body: Reference | DeadLetter, *, epoch: int = 0) -> str:
    """`epoch` is how often the jobs were restored from a backup."""
    reference = reference_of(body)
    wire: dict[str, object] = {
        "schema": SCHEMA_VERSION,
        "tenant": reference.tenant,
        "id": reference.job_id,
        "generation": reference.generation,
        "trace": reference.trace,
    }
    if epoch:
        wire["epoch"] = epoch
    if first := reference.first_run:
        wire["first"] = {"type": first.type, "due": epoch_milliseconds(first.due)}
    if isinstance(body, DeadLetter):
        wire["letter"] = {
            "type": body.type,
            "death": body.death,
            "error_class": body.error_class,
            "attempts": body.attempts,
        }
    return json.dumps(wire, separators=(",", ":"))


def decode(text: str, *, epoch: int = 0) -> Reference | DeadLetter:
    """`epoch` is that of the reader.

    Raises `NewerSchemaError`, `OtherEpochError`, and `MalformedDocumentError` for a body that Tidemill did not write.
    """
    try:
        wire = json.loads(text)
        if (schema := int(wire["schema"])) > SCHEMA_VERSION:
            raise NewerSchemaError("message", schema, SCHEMA_VERSION)
        if (sent_in := int(wire.get("epoch", 0))) != epoch:
            raise OtherEpochError(sent_in, epoch)
        reference = Reference(
            tenant=str(wire["tenant"]),
            job_id=str(wire["id"]),
            generation=int(wire["generation"]),
            trace=str(wire["trace"]),
            first_run=_first_run(wire["first"]) if "first" in wire else None,
        )
        if "letter" not in wire:
            return reference
        dead_letter = wire["letter"]
        return DeadLetter(
            reference=reference,
            type=str(dead_letter["type"]),
            death=str(dead_letter["death"]),
            error_class=str(dead_letter["error_class"]),
            attempts=int(dead_letter["attempts"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise MalformedDocumentError(f"not a message of Tidemill: {error!r}") from error


def _first_run(wire: dict[str, object]) -> FirstRun:
    return FirstRun(type=str(wire["type"]), due=EPOCH + int(str(wire["due"])) * MILLISECOND)
