"""Problem documents (RFC 9457): how the API answers a request that it refuses or cannot serve."""

import json
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from aws_lambda_powertools.event_handler import Response

from tidemill.domain.errors import (
    BatchRefusedError,
    Fault,
    FlowRefusedError,
    InvalidPayloadError,
    KeyReusedError,
    MalformedDocumentError,
    NewerSchemaError,
    PayloadTooLargeError,
    QuotaExceededError,
    StoreUnavailableError,
    SubmissionPausedError,
    SubmissionShedError,
    SupersedeRefusedError,
    TidemillError,
    TransactionConflictError,
    UnknownJobTypeError,
    UnloadedJobTypeError,
)
from tidemill.metrics import Metric
from tidemill.telemetry.outcome_log import logger, submission_refused

_PROBLEM_JSON: Final = "application/problem+json"
_RETRY_AFTER_SECONDS: Final = 1
#: The caller may send the request again later.
_LATER: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
#: The names of RFC 9110, which Python uses from 3.13 on.
_TITLES: Final[Mapping[HTTPStatus, str]] = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Content Too Large",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Unprocessable Content",
}


class ProblemError(TidemillError):
    """A refused request. Programs read `code`, the last part of the problem's URN; `detail` is for a person."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        detail: str,
        *,
        faults: Sequence[Fault] = (),
        request_id: str = "",
        retry_after_seconds: int = _RETRY_AFTER_SECONDS,
        decided: bool = False,
    ) -> None:
        """`request_id`: under which the operator finds the request in the logs.

        `retry_after_seconds`: of a 429 or a 503. `decided`: an operator or the governor wants the refusal.
        """
        super().__init__(detail)
        self.status = status
        self.code = code
        self.faults = faults
        self.request_id = request_id
        self.retry_after_seconds = retry_after_seconds
        self._decided = decided

    @property
    def is_failure(self) -> bool:
        """Whether the API could not do what it should."""
        return self.status >= HTTPStatus.INTERNAL_SERVER_ERROR and not self._decided

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "type": f"urn:tidemill:problem:{self.code}",
            "title": _TITLES.get(self.status, self.status.phrase),
            "status": self.status.value,
            "detail": str(self),
        }
        if self.request_id:
            body["instance"] = f"urn:tidemill:request:{self.request_id}"
        if self.faults:
            body["errors"] = [{"pointer": _fragment(fault.path), "detail": fault.message} for fault in self.faults]
        return body

    def batch_answer(self) -> dict[str, Any]:
        """Return one of the answers of a batch, which has no headers of its own."""
        later = {"retry_after": self.retry_after_seconds} if self.status in _LATER else {}
        return {"status": self.status, "problem": self.document()} | later

    def response(self) -> Response[str]:
        headers = {"Retry-After": str(self.retry_after_seconds)} if self.status in _LATER else {}
        return Response(self.status, _PROBLEM_JSON, json.dumps(self.document()), headers=headers)


#: The status and the code of each error of the engine.
_PROBLEMS: Final[Mapping[type[Exception], tuple[HTTPStatus, str]]] = {
    UnknownJobTypeError: (HTTPStatus.UNPROCESSABLE_ENTITY, "unknown-job-type"),
    InvalidPayloadError: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-body"),
    PayloadTooLargeError: (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large"),
    SupersedeRefusedError: (HTTPStatus.CONFLICT, "not-allowed-now"),
    FlowRefusedError: (HTTPStatus.CONFLICT, "not-allowed-now"),
    BatchRefusedError: (HTTPStatus.CONFLICT, "not-allowed-now"),
    KeyReusedError: (HTTPStatus.UNPROCESSABLE_ENTITY, "key-reused"),
    StoreUnavailableError: (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
    TransactionConflictError: (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
    NewerSchemaError: (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
}
#: Names no dependency, and does not claim that nothing was stored: a response may be lost after the write.
_UNAVAILABLE: Final = "A dependency did not respond. Retry, with the same Idempotency-Key if you sent one."
_UNREADABLE: Final = "The job exists, but nothing can run or change it until the operator repairs its document: "
_INTERNAL: Final = (
    "An unexpected error occurred. The operator can find its cause in the logs, under the id in `instance`."
)


def as_problem(error: Exception, *, request_id: str, under: str = "") -> ProblemError:
    """`under` is the JSON pointer of the part of the body that the error is about; empty means the whole body."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, SubmissionPausedError | SubmissionShedError | UnloadedJobTypeError | QuotaExceededError):
        return _not_now(error, under)
    for kind, (status, code) in _PROBLEMS.items():
        if isinstance(error, kind) and status is HTTPStatus.SERVICE_UNAVAILABLE:
            logger().warning("unavailable", extra={"error": str(error)})
            return ProblemError(status, code, _UNAVAILABLE)
        if isinstance(error, kind):
            found = [Fault(under + fault.path, fault.message) for fault in _faults(error)]
            return ProblemError(status, code, _detail(error), faults=found)
    extra = {"request": request_id}
    if isinstance(error, MalformedDocumentError):
        logger().error("unreadable job", extra=extra | {"error": str(error)})
        detail = f"{_UNREADABLE}{error}"
        return ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, "unreadable-job", detail, request_id=request_id)
    logger().error("unexpected error", exc_info=error, extra=extra)
    return ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", _INTERNAL, request_id=request_id)


def _not_now(
    error: SubmissionPausedError | SubmissionShedError | UnloadedJobTypeError | QuotaExceededError, under: str
) -> ProblemError:
    if isinstance(error, QuotaExceededError):
        return _over_quota(error, under)
    if isinstance(error, UnloadedJobTypeError):
        logger().warning("job type not loaded", extra={"error": str(error)})
        detail = f"job type {error.name!r} is not available now"
        return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "job-type-not-loaded", detail, retry_after_seconds=60)
    seconds = math.ceil(error.retry_after.total_seconds())
    if isinstance(error, SubmissionShedError):
        inputs: dict[str, object] = {"job_type": error.type, "strain": error.level, "retry_after_seconds": seconds}
        submission_refused("submission shed", Metric.SUBMISSIONS_SHED, inputs, item=under)
        return ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE, "strained", str(error), retry_after_seconds=seconds, decided=True
        )
    inputs = {"scope": error.scope, "retry_after_seconds": seconds}
    submission_refused("submission paused", Metric.SUBMISSIONS_PAUSED, inputs, item=under)
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "paused", str(error), retry_after_seconds=seconds, decided=True)


def _over_quota(error: QuotaExceededError, under: str) -> ProblemError:
    seconds = math.ceil(error.retry_after.total_seconds())
    inputs = {
        "quota": error.count,
        "period_seconds": error.period.total_seconds(),
        "known": error.known,
        "retry_after_seconds": seconds,
    }
    submission_refused("over quota", Metric.SUBMISSIONS_OVER_QUOTA, inputs, item=under)
    return ProblemError(HTTPStatus.TOO_MANY_REQUESTS, "quota-exceeded", str(error), retry_after_seconds=seconds)


def _fragment(path: str) -> str:
    """A JSON pointer as a URI fragment, which holds ASCII only. RFC 6901, section 6."""
    return "#" + quote(path, safe="/~!$&'()*+,;=:@?", errors="replace")


def _detail(error: Exception) -> str:
    """Leaves out what `_faults` says."""
    return error.summary if isinstance(error, UnknownJobTypeError) else str(error)


def _faults(error: Exception) -> Sequence[Fault]:
    if isinstance(error, InvalidPayloadError):
        return error.faults
    if isinstance(error, UnknownJobTypeError):
        return [Fault("/type", f"known types: {', '.join(sorted(error.known))}")]
    return []
