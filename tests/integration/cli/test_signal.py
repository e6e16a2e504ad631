"""`signal`: the caller's own jobs over the API, and those of a tenant in the table."""

import json

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW, a_job, stored
from tests.support.deployed_functions import Mill
from tidemill import WaitFor
from tidemill.domain.states import State
from tidemill.domain.time_constants import LONGEST_SPAN


def test_a_job_that_waits_is_signalled_and_a_repeat_prints_the_same(behind: Mill) -> None:
    behind.script.handler = lambda _payload, _run: WaitFor("approval", timeout=LONGEST_SPAN)
    job_id = behind.accepted()
    behind.run()
    for _ in range(2):
        result = run("signal", job_id, "approval", '{"by": "ada"}')
        assert (result.exit_code, result.stdout) == (0, f"{job_id}  queued, 1 hop\n"), result.stderr
        assert result.stderr == ""
    assert behind.job(job_id).signals.received[0].data == '{"by":"ada"}'


def test_a_signal_for_which_the_job_does_not_wait_says_so(behind: Mill) -> None:
    behind.script.handler = lambda _payload, _run: WaitFor("approval", timeout=LONGEST_SPAN)
    job_id = behind.accepted()
    behind.run()
    result = run("signal", job_id, "aproval", "true")
    assert (result.exit_code, "waits: signal approval" in result.stdout) == (0, True)
    assert result.stderr == (
        "The job does not wait for the signal aproval now. It keeps the signal until a run asks for it.\n"
    )


def test_a_refusal_says_why(behind: Mill) -> None:
    job_id = behind.accepted()
    behind.run()
    result = run("signal", job_id, "approval", "true")
    assert result.exit_code == 1
    assert "the job is succeeded, so the signal approval comes too late" in result.stderr


def test_an_operator_signals_the_job_of_a_tenant_and_leaves_an_audit_entry(cloud: Cloud) -> None:
    job = cloud.store.insert_if_absent(a_job(tenant="a:other", created_at=NOW))
    arguments = ("signal", job.id, "approval", "[1]", "--tenant", "a:other")

    result = run(*arguments, "--reason", "by phone", "--json")

    assert json.loads(result.stdout)["signals"][0]["data"] == [1]
    assert stored(cloud.store, job).signals.received[0].name == "approval"
    (entry,) = [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]
    assert (entry["command"], entry["reason"], entry["counts"]) == ("signal", "by phone", {"written": 1})
    assert entry["options"] == {"ids": [job.id], "tenant": "a:other", "name": "approval"}
    refused = run(*arguments[:3], "[2]", *arguments[4:])
    assert (refused.exit_code, "another value of the signal approval" in refused.stderr) == (1, True)
    assert stored(cloud.store, job).state is State.QUEUED


def test_wrong_usage_sends_nothing(cloud: Cloud) -> None:
    for arguments in (["a", "approval", "{"], ["a", "approval", "1", "--reason", "why"]):
        assert run("signal", *arguments).exit_code == 2
    missing = run("signal", "a", "approval", "1", "--tenant", "a:other")
    assert (missing.exit_code, "tenant a:other has no job a" in missing.stderr) == (1, True)
    assert cloud.server.requests == []
