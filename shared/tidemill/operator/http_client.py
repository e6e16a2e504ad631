"""Calls an HTTP API as somebody: with AWS credentials (SigV4) or a token, over the SDK's own HTTP session."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies

from tidemill.aws.clients import translated
from tidemill.domain.errors import StoreUnavailableError

#: API Gateway ends a request after 30 seconds.
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 35


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the API answered."""

    status: int
    #: By name in lower case.
    headers: Mapping[str, str]
    body: bytes


class NoAnswerError(StoreUnavailableError):
    """The request went out and no answer came back. Other ways to be unavailable mean that it was never sent."""


#: Puts into a request who sends it.
Identify = Callable[[AWSRequest], None]


def by_signature(credentials: Credentials, *, region: str) -> Identify:
    return SigV4Auth(credentials, "execute-api", region).add_auth


def by_token(token: str) -> Identify:
    """For an API whose callers bring a token (JWT) of its issuer."""

    def identify(request: AWSRequest) -> None:
        request.headers["Authorization"] = f"Bearer {token}"

    return identify


class HttpApi:
    """The API at `url`. Nothing is sent twice: only the caller knows whether it may be."""

    def __init__(self, url: str, identify: Identify) -> None:
        self._url = url
        self._identify = identify
        # Proxies and certificates from where the SDK's clients take them.
        self._session = URLLib3Session(
            verify=os.environ.get("AWS_CA_BUNDLE") or os.environ.get("REQUESTS_CA_BUNDLE") or True,  # type: ignore[arg-type]  # a path will do
            proxies=get_environ_proxies(url),
            timeout=(_CONNECT_SECONDS, _READ_SECONDS),  # type: ignore[arg-type]  # two figures will do
        )

    def request(self, method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """Raises `StoreUnavailableError` when it cannot be signed or sent, and `NoAnswerError`."""
        request = AWSRequest(method=method, url=self._url + path, data=body, headers=dict(headers or {}))
        with translated():
            self._identify(request)
            try:
                response = self._session.send(request.prepare())
                content = response.content
            except HTTPClientError as error:
                raise NoAnswerError(str(error)) from error
        return Answer(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=content,
        )
