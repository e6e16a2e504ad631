"""AWS AppConfig in memory: hosted versions, deployments, and sessions whose tokens are for one call."""

from collections.abc import Callable, Iterator
from io import BytesIO
from types import SimpleNamespace
from typing import Any

from botocore.exceptions import ClientError

#: For the test: AWS does not say how many it takes.
MOST_VERSIONS = 40
_PAGE = 7


class FakeAppConfig:
    """The calls of the clients `appconfig` and `appconfigdata` that Tidemill makes."""

    def __init__(self) -> None:
        self.meta = SimpleNamespace(events=SimpleNamespace(register=lambda *_, **__: None, unregister=lambda *_: None))
        self.versions: dict[int, bytes] = {}
        self._made = 0
        #: The code of the error of each deletion of a version.
        self.deletion_error = ""
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
        #: Called with what was deployed.
        self.after_deployment: Callable[[bytes], object] = lambda _copy: None
        self._tokens: dict[str, bytes | None] = {}

    def create_hosted_configuration_version(self, *, Content: bytes, **_: str) -> dict[str, Any]:  # noqa: N803
        if len(self.versions) == MOST_VERSIONS:
            raise _error("ServiceQuotaExceededException", "CreateHostedConfigurationVersion")
        self._made += 1
        self.versions[self._made] = Content
        return {"VersionNumber": self._made}

    def get_paginator(self, _operation: str) -> SimpleNamespace:
        """Return the paginator of `list_hosted_configuration_versions`."""
        return SimpleNamespace(paginate=self._pages_of_versions)

    def _pages_of_versions(self, **_: str) -> Iterator[dict[str, Any]]:
        numbers = sorted(self.versions)
        for begin in range(0, len(numbers), _PAGE):
            yield {"Items": [{"VersionNumber": each} for each in numbers[begin : begin + _PAGE]]}

    def delete_hosted_configuration_version(self, *, VersionNumber: int, **_: str) -> None:  # noqa: N803 - of the API
        if self.deletion_error:
            raise _error(self.deletion_error, "DeleteHostedConfigurationVersion")
        del self.versions[VersionNumber]

    def start_deployment(self, *, ConfigurationVersion: str, **_: str) -> None:  # noqa: N803
        self.deployments += 1
        if meanwhile := self.meanwhile:
            self.meanwhile = None
            meanwhile()
        if self.deployment_errors:
            raise _error(self.deployment_errors.pop(0), "StartDeployment")
        self.deployed = self.versions[int(ConfigurationVersion)]
        self.after_deployment(self.deployed)

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
