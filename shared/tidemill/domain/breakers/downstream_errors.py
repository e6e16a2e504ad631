"""Classifies the error of a call: only what the downstream is to blame for counts against it. Pure.

Breakers and adaptive limits use the same classes.

The rules know the errors of botocore, urllib, requests and httpx by attributes and class names, and import none.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from tidemill.domain.error_text import leaves
from tidemill.domain.errors import JobTimeoutError, PermanentJobError, RetryAfter, TidemillError


class ErrorClass(StrEnum):
    """Why a call failed."""

    #: The downstream is down, slow or cannot be reached: the same call may succeed later.
    TRANSIENT = "transient"
    #: The downstream has refused the call because it gets too many.
    THROTTLED = "throttled"
    #: The downstream works, and refuses this call for ever.
    PERMANENT = "permanent"
    #: The code of the handler is wrong, or the error says nothing about the downstream.
    DEFECT = "defect"

    @property
    def counts(self) -> bool:
        """Whether it counts against a breaker, and lowers an adaptive limit."""
        return self in {ErrorClass.TRANSIENT, ErrorClass.THROTTLED}


#: The rules of a job type: the class of an error by its name, or None to leave it to the rules here.
Classify = Callable[[Exception], str | None]

_OURS: Final[Mapping[type[Exception], ErrorClass]] = {
    RetryAfter: ErrorClass.THROTTLED,
    PermanentJobError: ErrorClass.PERMANENT,
    JobTimeoutError: ErrorClass.TRANSIENT,
}
_TOO_MANY_REQUESTS: Final = 429
_REQUEST_TIMEOUT: Final = 408
_CLIENT_ERROR: Final = 400
_SERVER_ERROR: Final = 500
#: Classes of Python, botocore, requests and httpx for connections that fail and responses that do not come.
_CONNECTION: Final = frozenset(
    {"ConnectionError", "HTTPClientError", "ReadTimeoutError", "TransportError", "TimeoutException", "Timeout"}
)
#: https://github.com/boto/botocore/blob/develop/botocore/retries/standard.py names these codes as throttling.
_THROTTLING: Final = frozenset(
    {
        *("Throttling", "ThrottlingException", "ThrottledException", "RequestThrottledException", "RequestThrottled"),
        *("TooManyRequestsException", "ProvisionedThroughputExceededException", "TransactionInProgressException"),
        *("RequestLimitExceeded", "BandwidthLimitExceeded", "LimitExceededException", "SlowDown"),
        *("PriorRequestNotComplete", "EC2ThrottledException"),
    }
)


#: The class of a group is the first of these that one of its errors has. A defect says nothing about the downstream.
_IN_A_GROUP: Final = (ErrorClass.THROTTLED, ErrorClass.TRANSIENT, ErrorClass.PERMANENT, ErrorClass.DEFECT)


def classify(error: BaseException, rules: Classify | None = None) -> ErrorClass:
    """The first rule that fits counts: that of the type, then ours. The rule of a type that fails is ignored.

    A group counts as the worst of its errors. The rule of the type gets each of them, and no group.
    """
    return min((_class_of_one(each, rules) for each in leaves(error)), key=_IN_A_GROUP.index)


def _class_of_one(error: BaseException, rules: Classify | None) -> ErrorClass:
    if rules and isinstance(error, Exception):
        try:
            if (named := rules(error)) is not None:
                return ErrorClass(named)
        except BaseException:  # noqa: BLE001 - the handler's error must not be lost behind one of the rules
            return ErrorClass.DEFECT
    if isinstance(error, TidemillError):
        # Others are our own, such as an outage of the jobs table.
        return next((known for kind, known in _OURS.items() if isinstance(error, kind)), ErrorClass.DEFECT)
    return _by_attributes(error) or _by_class(error)


def _by_attributes(error: BaseException) -> ErrorClass | None:
    """Other libraries have attributes of these names with other values, or properties that raise."""
    try:
        return _by_code(error) or _by_status(_status(error))
    except BaseException:  # noqa: BLE001 - the handler's error must not be lost behind one of its attributes
        return None


def _by_code(error: BaseException) -> ErrorClass | None:
    """`ClientError.response` of botocore."""
    response = getattr(error, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    return ErrorClass.THROTTLED if code in _THROTTLING else None


def _status(error: BaseException) -> Any:
    """The HTTP status: of botocore, of requests and httpx, of aiohttp, or of urllib."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        return response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    for holder, name in ((response, "status_code"), (error, "status_code"), (error, "status"), (error, "code")):
        if isinstance(status := getattr(holder, name, None), int):
            return status
    return None


def _by_status(status: Any) -> ErrorClass | None:
    if not isinstance(status, int) or status < _CLIENT_ERROR:
        return None
    if status == _TOO_MANY_REQUESTS:
        return ErrorClass.THROTTLED
    return ErrorClass.TRANSIENT if status >= _SERVER_ERROR or status == _REQUEST_TIMEOUT else ErrorClass.PERMANENT


def _by_class(error: BaseException) -> ErrorClass:
    """Errors of the file system are an `OSError` as well, and no network error."""
    names = {each.__name__ for each in type(error).__mro__}
    network = isinstance(error, TimeoutError) or "URLError" in names or "gaierror" in names
    return ErrorClass.TRANSIENT if network or names & _CONNECTION else ErrorClass.DEFECT
