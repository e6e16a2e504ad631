"""Calls whose tries end as a case says: with the retries of botocore, and with the simulated ones."""

import json
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import boto3
import botocore.endpoint
import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import BotoCoreError, ClientError
from urllib3 import HTTPResponse

from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.errors import ServiceError
from tests.simulation.world.installed_patches import client
from tests.simulation.world.sdk import Sdk
from tests.support.job_tables import REGION
from tidemill.aws import clients

#: Result of a try: code and HTTP status of an error, or a network error. None is a success.
Outcome = tuple[str, int] | Exception | None
_URL = "https://simulated.invalid"


class Retrying:
    """An SDK with the configuration of the engine."""

    def __init__(self) -> None:
        self._outcomes: list[Outcome] = []
        self.tries = 0
        #: Seconds before each retry.
        self.pauses: list[float] = []

    def call(self, *outcomes: Outcome) -> str:
        """The error code or the exception type of the call; empty for a success."""
        self._outcomes, self.tries = list(outcomes), 0
        self.pauses.clear()
        try:
            self._called()
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        except BotoCoreError as error:
            return type(error).__name__
        return ""

    def _called(self) -> None:
        raise NotImplementedError

    def _next(self) -> tuple[str, int] | None:
        self.tries += 1
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class Botocore(Retrying):
    """The SDK itself, without the network connection."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        patch.setattr(botocore.endpoint, "time", SimpleNamespace(sleep=self.pauses.append))
        self._client = boto3.client(
            "dynamodb",
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=clients.CONFIG,
        )
        events: Any = self._client.meta.events
        events.register("before-send.dynamodb.GetItem", self._answer)

    def _called(self) -> None:
        self._client.get_item(TableName="things", Key={})

    def _answer(self, **_event: Any) -> AWSResponse:
        code, status = self._next() or ("", 200)
        body = json.dumps({"__type": code} if code else {}).encode()
        return AWSResponse(_URL, status, HTTPHeaders(), HTTPResponse(BytesIO(body), preload_content=False))


class SimulatedSdk(Retrying):
    """The SDK of the simulator."""

    def __init__(self, aws: Simulated) -> None:
        super().__init__()
        self._aws = aws
        self._sdk = Sdk(aws.scheduler, aws.world.faults, aws.world.trace, {"dynamodb": [self]})
        self._tried_ms = 0

    def _called(self) -> None:
        self._aws.run(lambda: self._sdk.call(client("dynamodb"), "GetItem", {}))

    def get_item(self, _request: Any) -> dict[str, Any]:
        now_ms = self._aws.scheduler.now_ms
        if self.tries:
            self.pauses.append((now_ms - self._tried_ms) / 1000)
        self._tried_ms = now_ms
        if outcome := self._next():
            code, status = outcome
            raise ServiceError(code, "as the case says", status=status)
        return {}
