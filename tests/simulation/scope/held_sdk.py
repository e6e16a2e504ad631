"""The boundary to AWS, where each try of a call is held until the director releases it."""

from collections.abc import Mapping
from typing import Any

from botocore.client import BaseClient
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from tests.simulation.scope.director import Director
from tests.simulation.world.errors import ServiceError
from tests.simulation.world.sdk import Answer, Sdk
from tidemill.names import CONFIGURATION_KEY, JOB_KEY


class HeldSdk(Sdk):
    def _tried(
        self, client: BaseClient, service: str, operation: str, request: Mapping[str, Any], *, unanswered: bool
    ) -> Answer:
        if request.get("Key") == {JOB_KEY: {"S": CONFIGURATION_KEY}}:
            # No scenario has a configuration, so the order and the fate of its read change nothing.
            return self._operation(service, operation)(request)
        director = self._scheduler
        assert isinstance(director, Director)
        director.hold(service, operation, request)
        try:
            answer = super()._tried(client, service, operation, request, unanswered=unanswered)
        except (ServiceError, ConnectTimeoutError, ReadTimeoutError) as error:
            director.answered((str(error), getattr(error, "more", None)))
            raise
        director.answered(answer)
        return answer
