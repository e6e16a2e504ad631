"""The HTTP edge: who calls, what they sent, and problem documents (RFC 9457) for everything that is wrong."""

import json
import os
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import quote

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from pydantic import BaseModel, ValidationError

from tidemill.application.validation import LONGEST_TENANT, is_tenant
from tidemill.domain.errors import (
    Fault,
    InvalidPayloadError,
    KeyReusedError,
    NewerSchemaError,
    PayloadTooLargeError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    UnknownJobTypeError,
)
from tidemill.names import LARGEST_BODY_BYTES, Env
from tidemill.payload_model import faults
from tidemill.telemetry.outcome_log import logger

_JSON: Final = "application/json"
_PROBLEM_JSON: Final = "application/problem+json"
_RETRY_AFTER_SECONDS: Final = 1
_REPLACEMENT: Final = "\ufffd"
Body = TypeVar("Body", bound=BaseModel)

#: The header of an answer that an earlier request under the same key has had already.
REPLAYED: Final[Mapping[str, str]] = {"Idempotent-Replayed": "true"}
#: What an idempotency key may be: visible ASCII, as every proxy passes it on.
_LONGEST_KEY: Final = 255


class ProblemError(TidemillError):
    """A request that is refused. `code` names the kind of problem for programs, `detail` for the person."""

    def __init__(self, status: HTTPStatus, code: str, detail: str, *, faults: Sequence[Fault] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.faults = faults

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "type": f"urn:tidemill:problem:{self.code}",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": str(self),
        }
        if self.faults:
            body["errors"] = [{"pointer": _fragment(fault.path), "detail": fault.message} for fault in self.faults]
        return body

    def response(self) -> Response[str]:
        headers = {"Retry-After": str(_RETRY_AFTER_SECONDS)} if self.status is HTTPStatus.SERVICE_UNAVAILABLE else {}
        return Response(self.status, _PROBLEM_JSON, json.dumps(self.document()), headers=headers)


#: Our errors as problems: the status, and the code for programs.
_PROBLEMS: Final[Mapping[type[Exception], tuple[HTTPStatus, str]]] = {
    UnknownJobTypeError: (HTTPStatus.UNPROCESSABLE_ENTITY, "unknown-job-type"),
    InvalidPayloadError: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-body"),
    PayloadTooLargeError: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large"),
    KeyReusedError: (HTTPStatus.UNPROCESSABLE_ENTITY, "key-reused"),
    StoreUnavailableError: (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
    TransactionConflictError: (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
    NewerSchemaError: (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
}
#: Says nothing of what is behind us, nor that nothing was stored: an answer may be lost after the write.
_UNAVAILABLE: Final = "something behind us did not answer; send it again, with the same Idempotency-Key if it has one"


def resolver() -> APIGatewayHttpResolver:
    """A router that answers every error with a problem document, and none with a stack trace."""
    app = APIGatewayHttpResolver()

    @app.not_found
    def unknown_route(_: Exception) -> Response[str]:
        return ProblemError(HTTPStatus.NOT_FOUND, "not-found", "there is nothing here").response()

    @app.exception_handler(Exception)  # type: ignore[untyped-decorator]  # Powertools leaves it untyped
    def refused(error: Exception) -> Response[str]:
        return problem(error).response()

    return app


def json_response(status: HTTPStatus, body: object, *, headers: Mapping[str, str] | None = None) -> Response[str]:
    return Response(status, _JSON, json.dumps(body, separators=(",", ":")), headers=dict(headers or {}))


def tenant(event: APIGatewayProxyEventV2) -> str:
    """The verified caller, as the authoriser of this stage tells of it, and never as the request does."""
    authorizer = event.raw_event["requestContext"].get("authorizer") or {}
    if os.environ.get(Env.JWT):
        return _token_bearer((authorizer.get("jwt") or {}).get("claims") or {})
    return _signer(authorizer.get("iam") or {})


def _signer(iam: Mapping[str, Any]) -> str:
    """Account, and the id of the role or user without the session name, which callers choose.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
    """
    account, user = iam.get("accountId"), iam.get("userId") or iam.get("callerId")
    if not account or not user:
        raise ProblemError(HTTPStatus.FORBIDDEN, "no-identity", "sign the request with AWS credentials (SigV4)")
    principal = user.partition(":")[0]
    if principal == account:
        # The root user, and federated users, whose names their callers choose: they would share one tenant.
        detail = "sign the request as a role or a user of the account; root and federated users have no id of their own"
        raise ProblemError(HTTPStatus.FORBIDDEN, "no-identity", detail)
    return f"{account}:{principal}"


def _token_bearer(claims: Mapping[str, Any]) -> str:
    """Issuer and subject, which is unique within its issuer only (RFC 7519, section 4.1.2).

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html
    """
    issuer, subject = claims.get("iss"), claims.get("sub")
    # No URL has a `|` (RFC 3986), so the first one parts the two, whatever the subject is called.
    if not isinstance(issuer, str) or not issuer or "|" in issuer or not isinstance(subject, str) or not subject:
        detail = "send a token with an issuer and a subject (the claims iss and sub)"
        raise ProblemError(HTTPStatus.FORBIDDEN, "no-identity", detail)
    bearer = f"{issuer}|{subject}"
    if not is_tenant(bearer):
        detail = f"issuer and subject must be visible ASCII, and together shorter than {LONGEST_TENANT} characters"
        raise ProblemError(HTTPStatus.FORBIDDEN, "no-identity", detail)
    return bearer


def idempotency_key(event: APIGatewayProxyEventV2) -> str | None:
    """The `Idempotency-Key` header, or None without one."""
    key = event.headers.get("idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= _LONGEST_KEY or not all("!" <= character <= "~" for character in key):
        detail = f"Idempotency-Key must be 1 to {_LONGEST_KEY} visible ASCII characters"
        raise ProblemError(HTTPStatus.BAD_REQUEST, "invalid-key", detail)
    return key


def read_body(event: APIGatewayProxyEventV2, model: type[Body], *, limit_bytes: int = LARGEST_BODY_BYTES) -> Body:
    """The body as `model`; each way in which it is not is a problem of its own."""
    try:
        return model.model_validate(read_object(event, limit_bytes=limit_bytes))
    except ValidationError as error:
        raise InvalidPayloadError(faults(error)) from error


def read_object(event: APIGatewayProxyEventV2, *, limit_bytes: int = LARGEST_BODY_BYTES) -> dict[str, Any]:
    """The JSON object that the body is."""
    media_type = event.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != _JSON:
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", f"send the body as {_JSON}")
    decoded = _decoded(event, limit_bytes)
    if not isinstance(decoded, dict):
        raise InvalidPayloadError([Fault("", "the body must be a JSON object")])
    return decoded


def _decoded(event: APIGatewayProxyEventV2, limit_bytes: int) -> Any:
    try:
        body = event.decoded_body or ""
        if (size_bytes := len(body.encode())) > limit_bytes:
            detail = f"the body is {size_bytes} bytes, and {limit_bytes} is the most that is taken"
            raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", detail)
        if _was_mangled(event, body, size_bytes):
            raise ProblemError(HTTPStatus.BAD_REQUEST, "not-json", "the body is not UTF-8, as JSON must be")
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "not-json", f"the body is not JSON: {error}") from error


def _was_mangled(event: APIGatewayProxyEventV2, body: str, size_bytes: int) -> bool:
    """Whether the gateway has put U+FFFD in the place of bytes that are no UTF-8.

    It hands JSON over as text, so they are lost; but then the length is not the one that was sent. A U+FFFD that was
    sent is the caller's own.
    """
    sent_bytes = event.headers.get("content-length", "")
    return _REPLACEMENT in body and sent_bytes.isdecimal() and int(sent_bytes) != size_bytes


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def problem(error: Exception, *, under: str = "") -> ProblemError:
    """What to tell the caller. `under` is the JSON pointer of what the error is about, if not the whole body."""
    if isinstance(error, ProblemError):
        return error
    for kind, (status, code) in _PROBLEMS.items():
        if isinstance(error, kind) and status is HTTPStatus.SERVICE_UNAVAILABLE:
            logger().warning("unavailable", extra={"error": str(error)})
            return ProblemError(status, code, _UNAVAILABLE)
        if isinstance(error, kind):
            found = [Fault(under + fault.path, fault.message) for fault in _faults(error)]
            return ProblemError(status, code, _detail(error), faults=found)
    logger().exception("unexpected error", exc_info=error)
    return ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "something broke on our side")


def _fragment(path: str) -> str:
    """A JSON pointer as a URI fragment, which holds ASCII only. RFC 6901, section 6."""
    return "#" + quote(path, safe="/~!$&'()*+,;=:@?", errors="replace")


def _detail(error: Exception) -> str:
    """What the faults say is not said here, too."""
    return f"unknown job type {error.name!r}" if isinstance(error, UnknownJobTypeError) else str(error)


def _faults(error: Exception) -> Sequence[Fault]:
    if isinstance(error, InvalidPayloadError):
        return error.faults
    if isinstance(error, UnknownJobTypeError):
        return [Fault("/type", f"known types: {', '.join(sorted(error.known))}")]
    return []
