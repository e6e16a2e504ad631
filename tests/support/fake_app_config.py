"""AWS AppConfig in memory: hosted versions, deployments, and sessions whose tokens are for one call."""

from collections.abc import Callable
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError


class FakeAppConfig:
    """The calls of the clients `appconfig` and `appconfigdata` that Tidemill makes."""

    def __init__(self) -> None:
        self.meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_, **__: None, unregister=lambda *_: None))
        self.versions: list[bytes] = []
        self.deployed: bytes | None = None
        self.polls = 0
        self.sessions = 0
        #: How many deployments were tried.
        self.deployments = 0
        #: Errors of the next polls. The token of such a poll is used up.
        self.poll_errors: list[str] = []
        #: Errors of the next deployments.
        self.deployment_errors: list[str] = []
        #: Called before the next deployment.
        self.meanwhile: Callable[[], object] | None = None
        self._tokens: dict[str, bytes | None] = {}

    def create_hosted_configuration_version(self, *, Content: bytes, **_: str) -> dict[str, Any]:  # noqa: N803
        self.versions.append(Content)
        return {"VersionNumber": len(self.versions)}

    def start_deployment(self, *, ConfigurationVersion: str, **_: str) -> None:  # noqa: N803
        self.deployments += 1
        if meanwhile := self.meanwhile:
            self.meanwhile = None
            meanwhile()
        if self.deployment_errors:
            raise _error(self.deployment_errors.pop(0), "StartDeployment")
        self.deployed = self.versions[int(ConfigurationVersion) - 1]

    def start_configuration_session(self, **_: str) -> dict[str, Any]:
        self.sessions += 1
        return {"InitialConfigurationToken": self._token(None)}

    def get_latest_configuration(self, *, ConfigurationToken: str) -> dict[str, Any]:  # noqa: N803
        self.polls += 1
        if ConfigurationToken not in self._tokens:
            raise _error("BadRequestException", "GetLatestConfiguration")
        seen = self._tokens.pop(ConfigurationToken)
        if self.poll_errors:
            raise _error(self.poll_errors.pop(0), "GetLatestConfiguration")
        if self.deployed is None:
            raise _error("ResourceNotFoundException", "GetLatestConfiguration")
        body = b"" if seen == self.deployed else self.deployed
        return {"Configuration": BytesIO(body), "NextPollConfigurationToken": self._token(self.deployed)}

    def _token(self, seen: bytes | None) -> str:
        token = f"token-{self.polls}-{len(self._tokens)}"
        self._tokens[token] = seen
        return token


def _error(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "a test"}}, operation)
