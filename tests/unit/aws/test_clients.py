"""How long the command line waits for an answer."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import pytest

from tidemill.aws import clients
from tidemill.cdk.config import LONGEST_API_TIMEOUT_SECONDS

#: Longer than other calls may take.
SLOW_SECONDS = 2.2


class _SlowFunction(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        time.sleep(SLOW_SECONDS)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def slow_function(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _SlowFunction) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, value in {
            "AWS_ENDPOINT_URL_LAMBDA": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "NO_PROXY": "127.0.0.1",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        clients.invocations.cache_clear()
        yield
        clients.invocations.cache_clear()
        server.shutdown()


@pytest.mark.usefixtures("slow_function")
def test_the_command_line_waits_for_a_function_that_starts_slowly() -> None:
    answer = clients.invocations().invoke(FunctionName="tick", Payload="{}")

    assert answer["Payload"].read() == b"{}"
    assert clients.invocations().meta.config.read_timeout > LONGEST_API_TIMEOUT_SECONDS


@pytest.mark.parametrize("version", ["1.34.145", "1.34.146", "1.43.106", "2.0.0"])
def test_a_sdk_as_old_as_that_of_the_oldest_runtime_serves(version: str) -> None:
    clients.require_sdk(version)


@pytest.mark.parametrize("version", ["1.34.144", "1.28.85"])
def test_an_older_sdk_is_refused_with_what_to_do(version: str) -> None:
    with pytest.raises(clients.OldSdkError, match=f"boto3 {version} is older than 1.34.145: add boto3 to functions/"):
        clients.require_sdk(version)
