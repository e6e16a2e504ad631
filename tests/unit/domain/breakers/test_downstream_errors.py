"""The classes of errors: by the rules of the type, by code and status, and by class."""

import socket
import urllib.error
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError
from botocore.retries.standard import ThrottledRetryableChecker

from tidemill.domain.breakers.downstream_errors import ErrorClass, classify
from tidemill.domain.errors import JobTimeoutError, PermanentJobError, RetryAfter, StoreUnavailableError


def _client_error(code: str, status: int) -> ClientError:
    answer: Any = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "Call")


class _ResponseError(Exception):
    """An error that requests and httpx raise."""

    def __init__(self, status_code: int) -> None:
        super().__init__(status_code)
        self.response = SimpleNamespace(status_code=status_code)


def _own_error(response: Any, name: str = "OwnError") -> Exception:
    """Its `response` is not that of botocore, or raises."""

    def read(_error: Exception) -> Any:
        if isinstance(response, Exception):
            raise response
        return response

    kind: type[Exception] = type(name, (Exception,), {"response": property(read)})
    return kind()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError(), ErrorClass.TRANSIENT),
        (ConnectionResetError(), ErrorClass.TRANSIENT),
        (socket.gaierror(), ErrorClass.TRANSIENT),
        (urllib.error.URLError("refused"), ErrorClass.TRANSIENT),
        (urllib.error.HTTPError("http://a.invalid", 503, "", Message(), None), ErrorClass.TRANSIENT),
        (urllib.error.HTTPError("http://a.invalid", 404, "", Message(), None), ErrorClass.PERMANENT),
        (_ResponseError(429), ErrorClass.THROTTLED),
        (_ResponseError(408), ErrorClass.TRANSIENT),
        (_ResponseError(500), ErrorClass.TRANSIENT),
        (_ResponseError(422), ErrorClass.PERMANENT),
        (_client_error("ThrottlingException", 400), ErrorClass.THROTTLED),
        (_client_error("InternalServerError", 500), ErrorClass.TRANSIENT),
        (_client_error("ValidationException", 400), ErrorClass.PERMANENT),
        (EndpointConnectionError(endpoint_url="http://a.invalid"), ErrorClass.TRANSIENT),
        (ConnectTimeoutError(endpoint_url="http://a.invalid"), ErrorClass.TRANSIENT),
        (ReadTimeoutError(endpoint_url="http://a.invalid"), ErrorClass.TRANSIENT),
        (RetryAfter(5), ErrorClass.THROTTLED),
        (PermanentJobError("no"), ErrorClass.PERMANENT),
        (JobTimeoutError("slow"), ErrorClass.TRANSIENT),
        (StoreUnavailableError("ours"), ErrorClass.DEFECT),
        (KeyError("a"), ErrorClass.DEFECT),
        (FileNotFoundError(), ErrorClass.DEFECT),
        (_own_error({"Error": "text"}), ErrorClass.DEFECT),
        (_own_error({"Error": {"Code": ["a"]}}), ErrorClass.DEFECT),
        (_own_error({"ResponseMetadata": None}), ErrorClass.DEFECT),
        (_own_error({"Error": "text"}, "Timeout"), ErrorClass.TRANSIENT),
        (_own_error(ValueError("no response yet")), ErrorClass.DEFECT),
    ],
)
def test_an_error_has_its_class(error: Exception, expected: ErrorClass) -> None:
    assert classify(error) is expected


@pytest.mark.parametrize(
    "name",
    [
        *("ConnectionError", "Timeout"),  # requests
        "TransportError",  # httpx
        "TimeoutException",  # httpcore
        "ReadTimeoutError",  # urllib3
        *("HTTPClientError", "URLError", "gaierror"),
    ],
)
def test_a_connection_error_of_a_library_is_known_by_the_name_of_its_class_or_of_a_base(name: str) -> None:
    kind = type(name, (Exception,), {})
    assert classify(kind()) is ErrorClass.TRANSIENT
    assert classify(type("OwnError", (kind,), {})()) is ErrorClass.TRANSIENT


def test_each_code_that_botocore_takes_for_throttling_is_throttling() -> None:
    codes = ThrottledRetryableChecker._THROTTLED_ERROR_CODES  # type: ignore[attr-defined]  # the stubs lack it
    assert {classify(_client_error(code, 400)) for code in codes} == {ErrorClass.THROTTLED}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (302, ErrorClass.DEFECT),
        (399, ErrorClass.DEFECT),
        (400, ErrorClass.PERMANENT),
        (428, ErrorClass.PERMANENT),
        (429, ErrorClass.THROTTLED),
        (499, ErrorClass.PERMANENT),
        (500, ErrorClass.TRANSIENT),
        (504, ErrorClass.TRANSIENT),
    ],
)
def test_the_status_of_an_answer_decides(status: int, expected: ErrorClass) -> None:
    assert classify(_ResponseError(status)) is expected
    assert classify(_client_error("Other", status)) is expected


@pytest.mark.parametrize("attribute", ["status_code", "status", "code"])
def test_the_status_may_be_an_attribute_of_the_error(attribute: str) -> None:
    error = Exception("refused")
    setattr(error, attribute, 503)
    assert classify(error) is ErrorClass.TRANSIENT
    setattr(error, attribute, "503")
    assert classify(error) is ErrorClass.DEFECT


def test_the_rules_of_the_type_come_first() -> None:
    assert classify(KeyError("a"), lambda _error: "transient") is ErrorClass.TRANSIENT
    assert classify(TimeoutError(), lambda _error: None) is ErrorClass.TRANSIENT


def test_the_rules_of_the_type_are_not_asked_about_the_end_of_the_process() -> None:
    assert classify(KeyboardInterrupt(), lambda _error: "transient") is ErrorClass.DEFECT


def test_a_rule_that_fails_counts_nothing() -> None:
    def broken(_error: Exception) -> str:
        raise ValueError

    assert classify(TimeoutError(), broken) is ErrorClass.DEFECT
    assert classify(TimeoutError(), lambda _error: "unheard of") is ErrorClass.DEFECT


def test_only_what_the_downstream_is_to_blame_for_counts() -> None:
    assert {each for each in ErrorClass if each.counts} == {ErrorClass.TRANSIENT, ErrorClass.THROTTLED}


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([ConnectionError(), ConnectionError()], ErrorClass.TRANSIENT),
        ([ValueError(), ConnectionError()], ErrorClass.TRANSIENT),
        ([ConnectionError(), RetryAfter(5)], ErrorClass.THROTTLED),
        ([ValueError(), PermanentJobError("no")], ErrorClass.PERMANENT),
        ([PermanentJobError("no"), ExceptionGroup("inner", [TimeoutError()])], ErrorClass.TRANSIENT),
        ([ValueError(), KeyError()], ErrorClass.DEFECT),
    ],
)
def test_a_group_counts_as_the_worst_of_its_errors(errors: list[Exception], expected: ErrorClass) -> None:
    assert classify(ExceptionGroup("calls", errors)) is expected


def test_the_rules_of_the_type_are_asked_about_each_error_of_a_group() -> None:
    asked: list[Exception] = []
    classify(ExceptionGroup("calls", [ValueError(), ExceptionGroup("inner", [KeyError()])]), asked.append)
    assert [type(each) for each in asked] == [ValueError, KeyError]


def test_a_rule_and_an_attribute_that_end_the_process_count_nothing() -> None:
    class ExitingError(Exception):
        @property
        def response(self) -> None:
            raise SystemExit

    def rule(_error: Exception) -> None:
        raise SystemExit

    assert classify(ConnectionError(), rule) is ErrorClass.DEFECT
    assert classify(ExitingError()) is ErrorClass.DEFECT
