"""The variables that `make up` leaves for a shell."""

import re
import subprocess
from pathlib import Path

import pytest

from tidemill.local.__main__ import _exports
from tidemill.local.deployed_app import App
from tidemill.local.environment import Keys
from tidemill.local.paths import ROOT
from tidemill.local.signed_caller import Caller
from tidemill.names import Output

ENDPOINT = "http://127.0.0.1:4566"


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    """The variables of a shell that has read only this file."""
    app = App(tmp_path, ENDPOINT, {Output.API_ID: "a1b2"})
    # In place of a session of a role, which needs an emulator.
    app.__dict__["caller"] = Caller(ENDPOINT, Keys(access_key="key", secret_key="secret", token="token"))
    file = tmp_path / "env"
    file.write_text(_exports(app))
    done = subprocess.run(
        ["/bin/sh", "-c", f"set -eu; . {file}; env"], env={}, capture_output=True, text=True, check=True
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def test_the_url_of_the_api_survives_the_expansion_of_a_shell(variables: dict[str, str]) -> None:
    assert variables["TIDEMILL_API_URL"] == f"{ENDPOINT}/_aws/execute-api/a1b2/$default"


@pytest.mark.parametrize("page", ["docs/start/first-job.md", "docs/reference/http.md"])
def test_the_documented_call_by_curl_needs_no_other_variable(variables: dict[str, str], page: str) -> None:
    (call,) = re.findall(r"curl --aws-sigv4.+?```", (ROOT / page).read_text(), re.DOTALL)
    named = set(re.findall(r"\$(\w+)", call))
    assert {"AWS_REGION", "AWS_SESSION_TOKEN", "TIDEMILL_API_URL"} <= named <= variables.keys()
