"""Reads a request: its `Idempotency-Key`, and its body, a JSON object that is checked against a model."""

import json
from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final, NoReturn, TypeVar

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from pydantic import BaseModel, ConfigDict, ValidationError

from tidemill.declarations.payload_model import faults
from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.http.problems import ProblemError
from tidemill.names import LARGEST_BODY_BYTES

_JSON: Final = "application/json"
_REPLACEMENT: Final = "\ufffd"
#: The longest idempotency key, in characters.
_LONGEST_KEY: Final = 255
#: The part of a member's name that a problem shows, in characters.
_SHOWN: Final = 100
Body = TypeVar("Body", bound=BaseModel)


class Nothing(BaseModel):
    """The body of a request that needs none: absent, or an empty object."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


def idempotency_key(event: APIGatewayProxyEventV2) -> str | None:
    """None without the header. Raises `ProblemError` unless it is visible ASCII, which every proxy passes on."""
    key = event.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= _LONGEST_KEY or not all("!" <= character <= "~" for character in key):
        detail = f"The Idempotency-Key is invalid. Use 1 to {_LONGEST_KEY} visible ASCII characters."
        raise ProblemError(HTTPStatus.BAD_REQUEST, "invalid-key", detail)
    return key


def read_body(event: APIGatewayProxyEventV2, model: type[Body], *, limit_bytes: int = LARGEST_BODY_BYTES) -> Body:
    """Raises `ProblemError`, or `InvalidPayloadError` with every fault that `model` finds."""
    try:
        return model.model_validate(read_object(event, limit_bytes=limit_bytes))
    except ValidationError as error:
        raise InvalidPayloadError(faults(error)) from error


def read_object(event: APIGatewayProxyEventV2, *, limit_bytes: int = LARGEST_BODY_BYTES) -> dict[str, Any]:
    """The body without a model. Raises `ProblemError`, or `InvalidPayloadError` if it is JSON but not an object."""
    decoded = read_value(event, limit_bytes=limit_bytes)
    if not isinstance(decoded, dict):
        raise InvalidPayloadError([Fault("", "the body must be a JSON object")])
    return decoded


def read_value(event: APIGatewayProxyEventV2, *, limit_bytes: int = LARGEST_BODY_BYTES) -> Any:
    """The body, any JSON value. Raises `ProblemError`."""
    media_type = event.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != _JSON:
        detail = f"The body has the wrong media type. Send it as {_JSON}."
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", detail)
    return _decoded(event, limit_bytes)


def _decoded(event: APIGatewayProxyEventV2, limit_bytes: int) -> Any:
    try:
        body = event.decoded_body or ""
        if (size_bytes := len(body.encode())) > limit_bytes:
            detail = (
                f"The body has {size_bytes} bytes. Send at most {limit_bytes} bytes: "
                "store larger data elsewhere, such as in a bucket, and send its address."
            )
            raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail)
        if _was_mangled(event, body, size_bytes):
            raise ProblemError(HTTPStatus.BAD_REQUEST, "not-json", "The body is not UTF-8. Encode the JSON in UTF-8.")
        return json.loads(body, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "not-json", f"The body is not JSON: {error}") from error


def _object(members: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Raises `ProblemError` for a member that occurs twice.

    Python keeps the last of them and other parsers the first, so what a proxy has checked could differ from what runs:
    https://www.rfc-editor.org/rfc/rfc8259#section-4
    """
    read = dict(members)
    if len(read) < len(members):
        ((name, _),) = Counter(name for name, _ in members).most_common(1)
        detail = f"The body has an object with two members {json.dumps(name[:_SHOWN])}. Send each member once."
        raise ProblemError(HTTPStatus.BAD_REQUEST, "duplicate-member", detail)
    return read


def _was_mangled(event: APIGatewayProxyEventV2, body: str, size_bytes: int) -> bool:
    """Whether API Gateway replaced bytes that are not UTF-8 with U+FFFD.

    API Gateway passes JSON on as text, so the original bytes are lost. The replacement changes the length of the body,
    so a length that differs from Content-Length shows it. With the right length, the caller sent the U+FFFD itself.
    """
    sent_bytes = event.headers.get("content-length", "")
    return _REPLACEMENT in body and sent_bytes.isdecimal() and int(sent_bytes) != size_bytes


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
