"""The simulated Secrets Manager: constant values."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tests.simulation.world.errors import ServiceError

_CREATED: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Secrets:
    """The secrets of one world, by name."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def get_secret_value(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = request["SecretId"]
        if name not in self._values:
            raise ServiceError("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
        if request.get("VersionStage") == "AWSPREVIOUS":
            raise ServiceError("ResourceNotFoundException", "Secrets Manager can't find the specified secret value.")
        return {"Name": name, "SecretString": self._values[name], "CreatedDate": _CREATED}
