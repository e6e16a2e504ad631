"""What goes wrong around a command: credentials, permissions, the network, a closed pipe, Ctrl-C."""

import os
import signal
import subprocess
import sys

import pytest
from botocore.exceptions import ClientError

from tests.integration.cli.conftest import Cloud, run
from tests.integration.cli.loopback import Loopback
from tidemill.aws import clients

PROGRAM = [sys.executable, "-c", "from tidemill.cli.main import main; main()"]


def test_without_credentials_it_says_how_to_give_some(server: Loopback, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("AWS_ACCESS_KEY_ID")
    result = run("list")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[0] == "Error: Unable to locate credentials"
    assert "What to do: Give AWS credentials" in result.stderr


def test_without_a_region_it_says_how_to_give_one(server: Loopback, environment: pytest.MonkeyPatch) -> None:
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
        (403, "ExpiredToken", "renew them"),
        (403, "AccessDenied", "may not do this"),
        (403, "InvalidClientTokenId", "not known where they were sent"),
        (403, "SignatureDoesNotMatch", "clock of this machine"),
    ],
)
def test_a_refusal_by_aws_says_what_to_do(server: Loopback, status: int, code: str, remedy: str) -> None:
    server.error = (status, code, "no: cloudformation:DescribeStacks")
    for arguments in (["list"], ["--stack", "x", "list"]):
        result = run(*arguments)
        assert result.exit_code == 1
        assert "cloudformation:DescribeStacks" in result.stderr
        assert remedy in result.stderr


def test_a_failure_of_aws_needs_no_advice(server: Loopback) -> None:
    server.error = (400, "Strange", "odd")
    result = run("list")
    assert result.exit_code == 1
    assert "What to do" not in result.stderr


def test_a_service_that_is_not_there_is_explained(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    result = run("list")
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith("Error: Could not connect to the endpoint URL")
    assert lines[-2].startswith("  caused by ConnectionRefusedError")
    assert "make up" in lines[-1]


def test_a_queue_that_is_gone_is_explained(cloud: Cloud) -> None:
    clients.sqs().delete_queue(QueueUrl=cloud.dead_letters)
    result = run("status")
    assert result.exit_code == 1
    assert "deploy the stack again" in result.stderr


def test_debug_shows_the_traceback_before_the_explanation(server: Loopback) -> None:
    server.stacks = []
    plain, debug = run("list"), run("--debug", "list")
    assert "Traceback" not in plain.stderr
    assert debug.stderr.startswith("Traceback")
    assert debug.stderr.endswith(plain.stderr)


def test_a_fault_of_our_own_is_called_one(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("we never thought of this")

    monkeypatch.setattr("tidemill.operator.deployment.find", broken)
    result = run("list")
    assert result.exit_code == 1
    assert "Error: ValueError: we never thought of this" in result.stderr
    assert "--debug" in result.stderr


def test_a_closed_pipe_ends_it_without_a_word(server: Loopback) -> None:
    server.answers(200, {"id": "x"})
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen([*PROGRAM, "get", "x"], stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (141, b"")


def test_ctrl_c_ends_it_with_one_word(server: Loopback) -> None:
    server.release.clear()
    with subprocess.Popen([*PROGRAM, "get", "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert server.arrived.wait(30)
        process.send_signal(signal.SIGINT)
        written, said = process.communicate(timeout=30)
    assert (process.returncode, written, said) == (130, b"", b"Interrupted.\n")


def test_a_stream_without_our_characters_is_no_reason_to_fail(server: Loopback) -> None:
    server.answers(200, {"id": "x"}, Idempotent_Replayed="true")
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "TTY_COMPATIBLE": "1", "NO_COLOR": "1"}
    server.answers(200, {"id": "–"})  # noqa: RUF001
    done = subprocess.run([*PROGRAM, "get", "x"], env=environment, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0
    assert b"\\u2013" in done.stdout


def test_errors_of_aws_have_two_roots() -> None:
    assert ClientError in clients.AWS_ERRORS
