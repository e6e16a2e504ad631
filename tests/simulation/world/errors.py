"""Error responses of the simulated services."""

from collections.abc import Mapping
from typing import Any


class ServiceError(Exception):
    """An error response, before the SDK turns it into an exception."""

    def __init__(self, code: str, message: str = "", *, status: int = 400, **more: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        #: Other parts of the response, such as `Item` or `CancellationReasons`.
        self.more: Mapping[str, Any] = more


def invalid(message: str) -> ServiceError:
    return ServiceError("ValidationException", message)
