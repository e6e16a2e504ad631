"""The `Idempotency-Key` header of a request and the `Idempotent-Replayed` header of a response."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from tidemill.http.problems import ProblemError

#: Marks a response that repeats the result of an earlier request with the same key.
REPLAYED: Final[Mapping[str, str]] = {"Idempotent-Replayed": "true"}
#: In characters.
_LONGEST_KEY: Final = 255


def idempotency_key(event: APIGatewayProxyEventV2) -> str | None:
    """None without the header. Raises `ProblemError` unless it is visible ASCII, which every proxy passes on."""
    key = event.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= _LONGEST_KEY or not all("!" <= character <= "~" for character in key):
        detail = f"The Idempotency-Key is invalid. Use 1 to {_LONGEST_KEY} visible ASCII characters."
        raise ProblemError(HTTPStatus.BAD_REQUEST, "invalid-key", detail)
    return key
