"""An identity on the emulator: makes SDK clients and sends signed HTTP requests that cannot reach a real account."""

import functools
import json as json_
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import botocore.session
import urllib3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.configprovider import BOTOCORE_DEFAUT_SESSION_VARIABLES
from botocore.credentials import Credentials

from tidemill.local import environment
from tidemill.local.environment import REGION, Keys

#: The settings of botocore at their defaults. botocore reads none from the environment or a configuration file.
DEFAULTS: Final = {
    name: (None, None, default, conversion)
    for name, (_, _, default, conversion) in BOTOCORE_DEFAUT_SESSION_VARIABLES.items()
} | dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
TIMEOUT_SECONDS: Final = 30


@dataclass(frozen=True)
class Answer:
    """The response of an API. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json_.loads(self.body)


@dataclass(frozen=True)
class Caller:
    """Keys and the endpoint that accepts them. Threads may share a caller."""

    endpoint: str
    keys: Keys
    _pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(maxsize=32), repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def client(self, service: str) -> Any:
        """An SDK client of `service`, made once. Threads may share it."""
        with self._lock:
            return _client(service, self.endpoint, self.keys)

    def environment(self) -> dict[str, str]:
        """The whole environment of a child process that calls the emulator as this identity."""
        return environment.for_aws(self.endpoint, self.keys)

    def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        signed: bool = True,
    ) -> Answer:
        """Send one request, without retries, and do not follow redirects. Raises urllib3.exceptions.HTTPError."""
        if json is not None:
            body = json_.dumps(json).encode()
            headers = {"Content-Type": "application/json", **(headers or {})}
        request = AWSRequest(method=method, url=url, data=body, headers=dict(headers or {}))
        if signed:
            credentials = Credentials(self.keys.access_key, self.keys.secret_key, self.keys.token)
            SigV4Auth(credentials, "execute-api", REGION).add_auth(request)
        answer = self._pool.request(
            method,
            url,
            body=body,
            headers=dict(request.headers.items()),
            redirect=False,
            retries=False,
            timeout=TIMEOUT_SECONDS,
        )
        lowered = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(answer.status, lowered, answer.data)


@functools.cache
def _client(service: str, endpoint: str, keys: Keys) -> Any:
    session = botocore.session.Session(session_vars=DEFAULTS)
    session.set_credentials(keys.access_key, keys.secret_key, keys.token)
    # Without this setting, botocore would use the proxies in the environment or in the system's settings.
    return session.create_client(
        service, region_name=REGION, endpoint_url=endpoint, config=Config(proxies={}, max_pool_connections=32)
    )
