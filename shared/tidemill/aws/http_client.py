"""Calls an HTTP API with AWS credentials (SigV4) or a token, over the HTTP session of the AWS SDK."""

import os
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session
from botocore.utils import get_environ_proxies
from msgspec import Struct

from tidemill.aws.clients import translated
from tidemill.domain.errors import StoreUnavailableError

#: API Gateway ends a request after 30 seconds.
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 35


class Answer(Struct, frozen=True, kw_only=True):
    """A response of the API."""

    status: int
    #: The names are in lower case.
    headers: Mapping[str, str]
    body: bytes


class NoAnswerError(StoreUnavailableError):
    """The request was sent, and no response arrived. A plain `StoreUnavailableError` means that it was not sent."""


#: Adds the identity of the caller to a request.
Identify = Callable[[AWSRequest], None]


def by_signature(credentials: Credentials, *, region: str) -> Identify:
    return SigV4Auth(credentials, "execute-api", region).add_auth


def by_token(token: str) -> Identify:
    """For an API whose callers send a token (JWT) of its issuer."""

    def identify(request: AWSRequest) -> None:
        request.headers["Authorization"] = f"Bearer {token}"

    return identify


def api_address(api_id: str, url: str, *, endpoint: str) -> str:
    """The URL of an HTTP API, without a trailing slash. `endpoint` is that of another AWS service.

    An emulator on this machine serves APIs below its own endpoint, because DNS does not resolve their URLs.
    """
    if _is_loopback(urlsplit(endpoint).hostname or ""):
        return f"{endpoint.rstrip('/')}/_aws/execute-api/{api_id}/$default"
    return url.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


class HttpApi:
    """The API at `url`. It never retries, because only the caller knows whether a request is safe to repeat."""

    def __init__(self, url: str, identify: Identify) -> None:
        self._url = url
        self._identify = identify
        # The same proxies and certificates as the clients of the SDK.
        self._session = URLLib3Session(
            verify=os.environ.get("AWS_CA_BUNDLE") or os.environ.get("REQUESTS_CA_BUNDLE") or True,  # type: ignore[arg-type]  # it accepts a path
            proxies=get_environ_proxies(url),
            timeout=(_CONNECT_SECONDS, _READ_SECONDS),  # type: ignore[arg-type]  # it accepts a pair
        )

    def request(self, method: str, path: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """Raises `StoreUnavailableError` if it cannot sign or send, and `NoAnswerError` if no response arrives."""
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
