"""Starts the loopback server, points the SDK of this process to it, and takes its counts."""

import http.client
import json
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.benchmarks.loopback_aws import CONTROL
from tidemill.local.environment import without_aws
from tidemill.names import Env, Lane
from tools.paths import ROOT


class Loopback:
    def __init__(self, port: int, pem: Path) -> None:
        self.port = port
        self.pem = pem
        context = ssl.create_default_context(cafile=str(pem))
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)

    def take(self, *, delay_seconds: float = 0.0) -> dict[str, Any]:
        """What was counted, inserted and sent since the last time. From now on each answer takes the delay."""
        body = json.dumps({"delay_seconds": delay_seconds})
        self._connection.request("POST", "/", body, {"X-Amz-Target": CONTROL})
        taken: dict[str, Any] = json.loads(self._connection.getresponse().read())
        return taken

    def environment(self) -> dict[str, str]:
        """The environment of both builds."""
        url = f"https://127.0.0.1:{self.port}"
        queue = f"{url}/000000000000/"
        return {
            "AWS_ENDPOINT_URL": url,
            "AWS_CA_BUNDLE": str(self.pem),
            "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "example",
            "AWS_SESSION_TOKEN": "example",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "NO_PROXY": "127.0.0.1",
            "POWERTOOLS_METRICS_NAMESPACE": "bench",
            "POWERTOOLS_SERVICE_NAME": "tidemill-work",
            "TEXTBOOK_IDEMPOTENCY_TABLE": "idempotency",
            "TEXTBOOK_JOBS_TABLE": "textbook-jobs",
            "TEXTBOOK_QUEUE": f"{queue}textbook",
            Env.STAGE: "prod",
            Env.CODE_VERSION: "0a1b2c3",
            Env.JOBS_TABLE: "jobs",
            Env.LANES: json.dumps({Lane.DEFAULT: {"queue": f"{queue}lane", "dead_letters": f"{queue}dead"}}),
            Env.JOB_PACKAGES: "tests.benchmarks.jobs,tests.benchmarks.grouped_jobs",
            Env.JOB_TIMEOUT_SECONDS: "30",
            Env.RETENTION_DAYS: "30",
            Env.LISTING: "",
            Env.INDEX_SHARDS: "4",
            Env.FILES_BUCKET: "files",
            Env.JWT: "",
        }


@contextmanager
def loopback() -> Iterator[Loopback]:
    """Changes the environment of this process for good. Import the builds inside."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.loopback_aws", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT / 'shared'}:{ROOT}"},
            text=True,
        )
        assert server.stdin
        assert server.stdout
        try:
            started = Loopback(int(server.stdout.readline()), Path(folder, "loopback.pem"))
            clean = without_aws(os.environ) | started.environment()
            os.environ.clear()
            os.environ.update(clean)
            yield started
        finally:
            server.stdin.close()
            server.wait()
