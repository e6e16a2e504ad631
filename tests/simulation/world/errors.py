"""What the simulated services answer when they refuse."""

from collections.abc import Mapping
from typing import Any


class ServiceError(Exception):
    """An error answer, before the SDK makes an exception of it."""

    def __init__(self, code: str, message: str = "", *, status: int = 400, **more: Any) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        #: What the answer holds beside the error, as `Item` or `CancellationReasons`.
        self.more: Mapping[str, Any] = more


def invalid(message: str) -> ServiceError:
    return ServiceError("ValidationException", message)
