"""Failures around a command: credentials, permissions, the network, a closed pipe, Ctrl-C."""

import os
import signal
import subprocess
import sys

import pytest
from botocore.exceptions import ClientError

from tests.integration.cli.conftest import Cloud, run
from tests.integration.cli.loopback import Loopback
from tests.support.patience import PATIENCE_SECONDS
from tidemill.aws import clients

PROGRAM = [sys.executable, "-c", "from tidemill.cli.main import main; main()"]


def test_missing_credentials_are_explained(server: Loopback, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("AWS_ACCESS_KEY_ID")
    result = run("list")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[0] == "Error: Unable to locate credentials"
    assert "What to do: Configure AWS credentials" in result.stderr


def test_a_missing_region_is_explained(server: Loopback, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("AWS_REGION")
    result = run("list")
    assert result.exit_code == 1
    assert "--region" in result.stderr


def test_an_unknown_profile_is_explained(server: Loopback) -> None:
    result = run("--profile", "nope", "list")
    assert result.exit_code == 1
    assert "The config profile (nope) could not be found" in result.stderr
    assert "What to do: Check --profile" in result.stderr


@pytest.mark.parametrize(
    ("status", "code", "remedy"),
    [
        (403, "ExpiredToken", "Renew them"),
        (403, "AccessDenied", "may not do this"),
        (403, "InvalidClientTokenId", "does not accept the credentials"),
        (403, "SignatureDoesNotMatch", "clock of this machine"),
    ],
)
def test_a_refusal_by_aws_has_a_remedy(server: Loopback, status: int, code: str, remedy: str) -> None:
    server.error = (status, code, "no: cloudformation:DescribeStacks")
    for arguments in (["list"], ["--stack", "x", "list"]):
        result = run(*arguments)
        assert result.exit_code == 1
        assert "cloudformation:DescribeStacks" in result.stderr
        assert remedy in result.stderr


def test_an_unknown_error_of_aws_has_no_remedy(server: Loopback) -> None:
    server.error = (400, "Strange", "odd")
    result = run("list")
    assert result.exit_code == 1
    assert "What to do" not in result.stderr


def test_an_unreachable_service_is_explained(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    result = run("list")
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith("Error: Could not connect to the endpoint URL")
    assert lines[-2].startswith("  caused by ConnectionRefusedError")
    assert "make up" in lines[-1]


def test_a_deleted_queue_is_explained(cloud: Cloud) -> None:
    clients.sqs().delete_queue(QueueUrl=cloud.dead_letters)
    result = run("status")
    assert result.exit_code == 1
    assert "Deploy the stack again" in result.stderr


def test_debug_shows_the_traceback_before_the_explanation(server: Loopback) -> None:
    server.stacks = []
    plain, debug = run("list"), run("--debug", "list")
    assert "Traceback" not in plain.stderr
    assert debug.stderr.startswith("Traceback")
    assert debug.stderr.endswith(plain.stderr)


def test_an_unexpected_error_is_reported_as_a_bug(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("unexpected")

    monkeypatch.setattr("tidemill.operator.deployments.deployment.find", broken)
    result = run("list")
    assert result.exit_code == 1
    assert "Error: ValueError: unexpected" in result.stderr
    assert "--debug" in result.stderr


def test_a_closed_pipe_ends_the_command_silently(server: Loopback) -> None:
    server.answers(200, {"id": "x"})
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen([*PROGRAM, "get", "x"], stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        _, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, stderr) == (141, b"")


def test_ctrl_c_prints_one_line(server: Loopback) -> None:
    server.release.clear()
    with subprocess.Popen([*PROGRAM, "get", "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert server.arrived.wait(PATIENCE_SECONDS)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, stdout, stderr) == (130, b"", b"Interrupted.\n")


def test_characters_outside_the_encoding_of_the_stream_are_escaped(server: Loopback) -> None:
    server.answers(200, {"id": "x"}, Idempotent_Replayed="true")
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "TTY_COMPATIBLE": "1", "NO_COLOR": "1"}
    server.answers(200, {"id": "–"})  # noqa: RUF001
    command = [*PROGRAM, "get", "x"]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 0
    assert b"\\u2013" in done.stdout


def test_aws_errors_include_client_errors() -> None:
    assert ClientError in clients.AWS_ERRORS
