"""One call of the HTTP API, and its problem documents (RFC 9457) as errors."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from cli.errors import ExplainedError
from shared.adapters.signed_api import Answer, SignedApi

_AGAIN: Final = "Try again in a moment; a submission with --key can be repeated without making a second job."
_REMEDIES: Final[Mapping[int, str]] = {
    HTTPStatus.FORBIDDEN: "Sign as a role or user that may `execute-api:Invoke` this API; --profile says as whom.",
    HTTPStatus.TOO_MANY_REQUESTS: _AGAIN,
    HTTPStatus.SERVICE_UNAVAILABLE: _AGAIN,
    HTTPStatus.GATEWAY_TIMEOUT: _AGAIN,
}


def call(
    api: SignedApi, method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> tuple[Any, Answer]:
    """The document that was answered, and the answer. Raises `ExplainedError` for a refusal."""
    answer = api.request(method, path, body=body, headers=headers)
    document = _decoded(answer)
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise ExplainedError(_refusal(answer.status, document), remedy=_REMEDIES.get(answer.status, ""))
    if not isinstance(document, dict):
        raise ExplainedError(f"the API answered {answer.status} with something that is no job")
    return document, answer


def _decoded(answer: Answer) -> Any:
    try:
        return json.loads(answer.body)
    except ValueError:
        return None


def _refusal(status: int, document: Any) -> str:
    problem = document if isinstance(document, dict) else {}
    # API Gateway's own refusals are no problem documents; they have a message.
    title = problem.get("title") or problem.get("message") or _phrase(status)
    faults = [(str(fault.get("pointer")), str(fault.get("detail"))) for fault in problem.get("errors", [])]
    detail = problem.get("detail", "")
    if detail == "; ".join(f"{pointer.removeprefix('#')}: {text}" for pointer, text in faults):
        detail = ""  # only the faults once more
    said = f"the API answered {status} {title}" + (f": {detail}" if detail else "")
    return "\n".join([said, *(f"  {pointer}: {text}" for pointer, text in faults)])


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
