"""One call of the HTTP API. Turns problem documents (RFC 9457) into errors."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from tidemill.aws.http_client import Answer, HttpApi
from tidemill.cli.errors import CommandError

_RETRY: Final = "Retry in a moment. A submission with the same --key creates no second job."
_REMEDIES: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: (
        "This API requires a bearer token instead of an AWS signature: set TIDEMILL_TOKEN to one that has not expired."
    ),
    HTTPStatus.FORBIDDEN: "The caller needs `execute-api:Invoke` on this API: grant it, or use another --profile.",
    HTTPStatus.TOO_MANY_REQUESTS: _RETRY,
    HTTPStatus.SERVICE_UNAVAILABLE: _RETRY,
    HTTPStatus.GATEWAY_TIMEOUT: _RETRY,
}
_PROBLEM_PREFIX: Final = "urn:tidemill:problem:"


class ApiError(CommandError):
    """The API refused the request.

    `status` is the HTTP status. `code` is the kind of problem, and empty if API Gateway itself refused.
    """

    def __init__(self, status: int, problem: Any) -> None:
        super().__init__(f"the API answered {problem_text(status, problem)}", remedy=_REMEDIES.get(status, ""))
        self.status = status
        kind = problem.get("type") if isinstance(problem, dict) else None
        self.code = str(kind or "").removeprefix(_PROBLEM_PREFIX)


def call(
    api: HttpApi, method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> tuple[Any, Answer]:
    """The decoded JSON object and the response. Raises `ApiError`."""
    answer = api.request(method, path, body=body, headers=headers)
    document = _decoded(answer)
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise ApiError(answer.status, document)
    if not isinstance(document, dict):
        raise CommandError(f"the API answered {answer.status} with a body that is not a JSON object")
    return document, answer


def job_path(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"


def problem_text(status: int, document: Any) -> str:
    """One line for the problem, and one indented line for each fault."""
    problem = document if isinstance(document, dict) else {}
    # API Gateway's own errors are not problem documents; they have a `message`.
    title = problem.get("title") or problem.get("message") or _phrase(status)
    faults = [(str(fault.get("pointer")), str(fault.get("detail"))) for fault in problem.get("errors", [])]
    detail = problem.get("detail", "")
    for prefix in ("#", "#/"):
        if detail == "; ".join(_fault(pointer.removeprefix(prefix), text) for pointer, text in faults):
            detail = ""  # it only repeats the faults
    first_line = f"{status} {title}" + (f": {detail}" if detail else "")
    return "\n".join([first_line, *(f"  {_fault(pointer.removesuffix('#'), text)}" for pointer, text in faults)])


def _fault(path: str, text: str) -> str:
    """A fault of the whole document has an empty path."""
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
