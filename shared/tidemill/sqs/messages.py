"""Encodes and decodes the bodies of queue messages: ASCII JSON with ids only, since SQS rejects some characters."""

import json
from typing import Final

from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError
from tidemill.domain.job import DeadLetter, Reference, reference_of

SCHEMA_VERSION: Final = 1


def encode(body: Reference | DeadLetter) -> str:
    reference = reference_of(body)
    wire: dict[str, object] = {
        "schema": SCHEMA_VERSION,
        "tenant": reference.tenant,
        "id": reference.job_id,
        "generation": reference.generation,
        "trace": reference.trace,
    }
    if isinstance(body, DeadLetter):
        wire["letter"] = {
            "type": body.type,
            "death": body.death,
            "error_class": body.error_class,
            "attempts": body.attempts,
        }
    return json.dumps(wire, separators=(",", ":"))


def decode(text: str) -> Reference | DeadLetter:
    """Raises `NewerSchemaError`, and `MalformedDocumentError` for a body that Tidemill did not write."""
    try:
        wire = json.loads(text)
        if (schema := int(wire["schema"])) > SCHEMA_VERSION:
            raise NewerSchemaError("message", schema, SCHEMA_VERSION)
        reference = Reference(
            tenant=str(wire["tenant"]),
            job_id=str(wire["id"]),
            generation=int(wire["generation"]),
            trace=str(wire["trace"]),
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
