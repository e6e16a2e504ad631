"""One call of the HTTP API, and its problem documents (RFC 9457) as errors."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from tidemill.cli.errors import ExplainedError
from tidemill.operator.http_client import Answer, HttpApi

_AGAIN: Final = "Try again in a moment; a submission with --key can be repeated without making a second job."
_REMEDIES: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "This API wants a token of its issuer instead of a signature: give one in TIDEMILL_TOKEN.",
    HTTPStatus.FORBIDDEN: "Sign as a role or user that may `execute-api:Invoke` this API; --profile says as whom.",
    HTTPStatus.TOO_MANY_REQUESTS: _AGAIN,
    HTTPStatus.SERVICE_UNAVAILABLE: _AGAIN,
    HTTPStatus.GATEWAY_TIMEOUT: _AGAIN,
}
_CODES: Final = "urn:tidemill:problem:"


class RefusedError(ExplainedError):
    """The API refused. `status` is that of HTTP, `code` the kind of problem; the gateway's own have none."""

    def __init__(self, status: int, problem: Any) -> None:
        super().__init__(f"the API answered {refusal(status, problem)}", remedy=_REMEDIES.get(status, ""))
        self.status = status
        kind = problem.get("type") if isinstance(problem, dict) else None
        self.code = str(kind or "").removeprefix(_CODES)


def call(
    api: HttpApi, method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> tuple[Any, Answer]:
    """The document that was answered, and the answer. Raises `RefusedError`."""
    answer = api.request(method, path, body=body, headers=headers)
    document = _decoded(answer)
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise RefusedError(answer.status, document)
    if not isinstance(document, dict):
        raise ExplainedError(f"the API answered {answer.status} with something that is no JSON object")
    return document, answer


def path_of(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"


def refusal(status: int, document: Any) -> str:
    """A problem in a line, with a line below for each fault."""
    problem = document if isinstance(document, dict) else {}
    # API Gateway's own refusals are no problem documents; they have a message.
    title = problem.get("title") or problem.get("message") or _phrase(status)
    faults = [(str(fault.get("pointer")), str(fault.get("detail"))) for fault in problem.get("errors", [])]
    detail = problem.get("detail", "")
    for start in ("#", "#/"):
        if detail == "; ".join(_fault(pointer.removeprefix(start), text) for pointer, text in faults):
            detail = ""  # only the faults once more
    said = f"{status} {title}" + (f": {detail}" if detail else "")
    return "\n".join([said, *(f"  {_fault(pointer.removesuffix('#'), text)}" for pointer, text in faults)])


def _fault(path: str, text: str) -> str:
    """What is wrong with the whole has no path."""
    return f"{path}: {text}" if path else text


def _decoded(answer: Answer) -> Any:
    try:
        return json.loads(answer.body)
    except ValueError:
        return None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
