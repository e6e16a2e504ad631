"""`watch` and `submit --wait`: the polling, the display and the exit codes."""

import json
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import click
import pytest

from tests.integration.cli.conftest import run
from tests.integration.cli.loopback import Answer, Loopback, Request
from tests.integration.cli.test_failures import PROGRAM
from tests.support.deployed_functions import Mill
from tests.support.patience import PATIENCE_SECONDS

QUEUED = {"id": "a", "type": "t", "state": "queued", "attempt": 0}
RUNNING = {**QUEUED, "state": "running", "attempt": 1, "progress": {"done": 30, "total": 100, "at": None}}
SUCCEEDED = {**RUNNING, "state": "succeeded", "progress": {"done": 100, "total": 100, "at": None}}


@pytest.fixture
def pauses(environment: pytest.MonkeyPatch) -> list[float]:
    """Records the pauses between polls, in seconds, without sleeping."""
    made: list[float] = []
    environment.setattr("tidemill.cli.explain.watch.sleep", made.append)
    return made


def answering(server: Loopback, *jobs: dict[str, Any] | int) -> None:
    """Answer with these in turn: a job, or the status of an error. Repeat the last one."""
    left = list(jobs)

    def respond(_: Request) -> Answer:
        job = left.pop(0) if len(left) > 1 else left[0]
        return (job, {}, b"{}") if isinstance(job, int) else (200, {}, json.dumps(job).encode())

    server.respond = respond


def test_each_change_is_a_line_on_stderr_and_the_ended_job_is_on_stdout(server: Loopback, pauses: list[float]) -> None:
    answering(server, QUEUED, QUEUED, RUNNING, RUNNING, SUCCEEDED)
    result = run("watch", "a")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == SUCCEEDED
    assert result.stderr.splitlines() == [
        "a  queued",
        "a  running, attempt 1, 30 of 100",
        "a  succeeded, attempt 1, 100 of 100",
    ]


def test_the_pause_doubles_while_nothing_changes(server: Loopback, pauses: list[float]) -> None:
    answering(server, *[QUEUED] * 8, RUNNING, RUNNING, SUCCEEDED)
    run("watch", "a")
    assert pauses == [0.5, 1, 2, 3, 3, 3, 3, 3, 0.5, 1]


@pytest.mark.parametrize(
    ("states", "code"),
    [(["succeeded"], 0), (["dead"], 3), (["cancelled"], 4), (["succeeded", "cancelled", "dead"], 3)],
)
def test_the_exit_code_reflects_the_end_states(
    server: Loopback, pauses: list[float], states: list[str], code: int
) -> None:
    answering(server, *({**QUEUED, "id": f"j{index}", "state": state} for index, state in enumerate(states)))
    result = run("watch", *(f"j{index}" for index in range(len(states))))
    assert result.exit_code == code
    assert [json.loads(line)["state"] for line in result.stdout.splitlines()] == states


def test_only_jobs_that_have_not_ended_are_polled(server: Loopback, pauses: list[float]) -> None:
    answering(server, {**SUCCEEDED, "id": "a"}, {**QUEUED, "id": "b"}, {**SUCCEEDED, "id": "b"})
    run("watch", "a", "b", "a")
    assert [request.path[-1] for request in server.requests] == ["a", "b", "b"]


def test_a_line_explains_the_state_of_the_job(server: Loopback, pauses: list[float]) -> None:
    scheduled = {**QUEUED, "state": "scheduled", "due": "2030-01-31T08:00:00.000Z"}
    cancel_requested = {
        **RUNNING,
        "cancel_requested_at": "2030-01-31T08:00:00.000Z",
        "progress": {"done": 7, "total": None},
    }
    continued = {**QUEUED, "attempt": 0, "hops": 2}
    answering(
        server,
        scheduled,
        cancel_requested,
        continued,
        {**QUEUED, "state": "dead", "attempt": 8, "death": "attempts used up\x1b[2J"},
    )
    assert run("watch", "a").stderr.splitlines() == [
        "a  scheduled, due 2030-01-31T08:00:00.000Z",
        "a  running, cancel requested, attempt 1, 7",
        "a  queued, 2 hops",
        "a  dead, attempt 8, attempts used up\\x1b[2J",
    ]


def test_an_unknown_job_is_an_error_at_once(server: Loopback, pauses: list[float]) -> None:
    answering(server, 404)
    assert run("watch", "a").exit_code == 1
    assert not pauses


def test_a_transient_failure_is_retried_and_a_lasting_one_is_raised(server: Loopback, pauses: list[float]) -> None:
    answering(server, QUEUED, 503, 429, SUCCEEDED)
    result = run("watch", "a")
    assert result.exit_code == 0
    assert "503 Service Unavailable; retrying" in result.stderr
    answering(server, QUEUED, 503)
    failed = run("watch", "a")
    assert failed.exit_code == 1
    assert failed.stderr.count("retrying") == 11


def test_a_refusal_while_watching_is_an_error(server: Loopback, pauses: list[float]) -> None:
    answering(server, QUEUED, 403)
    assert run("watch", "a").exit_code == 1


def test_ctrl_c_stops_watching_and_leaves_the_job_running(server: Loopback) -> None:
    with subprocess.Popen([*PROGRAM, "watch", "a"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        answering(server, QUEUED)
        assert server.arrived.wait(PATIENCE_SECONDS)
        assert process.stderr is not None
        # The command has the answer, so it pauses, or is about to.
        assert process.stderr.readline() == b"a  queued\n"
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, stdout) == (130, b"")
    assert b"The jobs continue: `tidemill watch a`" in stderr
    assert {request.method for request in server.requests} == {"GET"}


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_a_bar_per_job(server: Loopback, pauses: list[float]) -> None:
    answering(server, {**RUNNING, "id": "a"}, {**QUEUED, "id": "b"}, {**SUCCEEDED, "id": "a"}, {**SUCCEEDED, "id": "b"})
    result = run("watch", "a", "b")
    lines = click.unstyle(result.stderr).splitlines()
    for job_id in ("a", "b"):
        # rich refreshes ten times a second, so a slow machine draws the last state more than once.
        *_, bar = (line for line in lines if line.startswith(f"{job_id} succeeded, attempt 1"))
        assert "━━━" in bar
        assert "100 of 100" in bar


@pytest.fixture
def working(behind: Mill, environment: pytest.MonkeyPatch) -> Mill:
    """The worker runs the jobs while the command line pauses."""
    environment.setattr("tidemill.cli.explain.watch.sleep", lambda _: behind.run())
    return behind


@pytest.mark.parametrize(
    ("handler", "state", "code"),
    [
        (lambda _payload, run: run.checkpoint(done=2, total=2), "succeeded", 0),
        (lambda _payload, _run: 1 / 0, "dead", 3),
    ],
)
def test_submit_with_wait_prints_the_ended_job(
    working: Mill, handler: Callable[..., Any], state: str, code: int
) -> None:
    working.script.handler = handler
    result = run("submit", "test.scripted", '{"n": 1}', "--wait")
    assert result.exit_code == code
    job = json.loads(result.stdout.splitlines()[-1])
    assert job["state"] == state
    assert f"Accepted as {job['id']}." in result.stderr
