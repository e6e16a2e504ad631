"""`redrive`: the jobs that it selects, its plan and confirmation, and the jobs that it keeps."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import click
import pytest
from botocore.exceptions import ConnectTimeoutError

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW, SECOND, SETTLEMENTS, a_job, claimed, stored
from tidemill.aws import clients
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.names import LARGEST_INDEX_SHARDS

#: The ARN with which moto answers.
_ARN: Final = "arn:aws:sts::123456789012:user/moto"


class SilentSts:
    """A client of STS that gets no answer."""

    calls = 0

    def get_caller_identity(self) -> Mapping[str, str]:
        SilentSts.calls += 1
        raise ConnectTimeoutError(endpoint_url="https://sts.invalid")


def _nameless() -> str:
    raise OSError("no username set in the environment")


def test_all_dead_jobs_are_redriven_and_a_sweep_deletes_their_dlq_messages(cloud: Cloud) -> None:
    jobs = [cloud.dead_job() for _ in range(9)]
    result = run("redrive", "--all", "--no-probe", "--yes")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["Redrove 9 of 9 jobs."]
    assert {cloud.state(job) for job in jobs} == {State.QUEUED}
    assert len(cloud.bodies()) == 9
    assert run("dlq", "sweep", "--yes").stdout == "DLQ messages: 9 deleted, 0 nudged, 0 kept.\n"
    assert cloud.bodies() == []


def test_the_audit_entry_names_the_verified_operator_and_the_reason(cloud: Cloud) -> None:
    job = cloud.dead_job()

    result = run("redrive", job.id, "--yes", "--reason", "fixed in 1.2")

    (entry,) = stored(cloud.store, job).redrives
    assert (entry.by, entry.reason, entry.death) == (_ARN, "fixed in 1.2", job.death)
    assert "STS" not in result.stderr


@pytest.mark.parametrize(
    ("user", "named"),
    [(lambda: "alice", "unverified:alice"), (_nameless, "unverified:unknown")],
    ids=["named", "nameless"],
)
def test_without_an_answer_of_sts_the_entry_says_that_the_name_is_not_verified(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, user: Any, named: str
) -> None:
    monkeypatch.setattr("getpass.getuser", user)
    monkeypatch.setattr(clients, "sts", SilentSts)
    monkeypatch.setattr(SilentSts, "calls", 0)
    jobs = [cloud.dead_job() for _ in range(2)]

    result = run("redrive", "--all", "--no-probe", "--yes")

    assert result.exit_code == 0
    assert {entry.by for job in jobs for entry in stored(cloud.store, job).redrives} == {named}
    assert result.stderr.count(f"the record of this command will name {named}") == SilentSts.calls == 1


def test_a_reason_is_for_operators_and_bounded(cloud: Cloud) -> None:
    job = cloud.dead_job()

    assert run("redrive", "--own", job.id, "--yes", "--reason", "x").exit_code == 2
    assert run("redrive", job.id, "--yes", "--reason", "x" * 201).exit_code == 2
    assert cloud.state(job) is State.DEAD


def test_only_jobs_of_the_type_are_redriven_and_other_dlq_messages_are_kept(cloud: Cloud) -> None:
    fixed, broken = cloud.dead_job(type="fixed"), cloud.dead_job(type="broken")
    run("redrive", "--type", "fixed", "--yes")
    result = run("dlq", "sweep", "--yes")
    assert "DLQ messages: 1 deleted, 0 nudged, 1 kept." in result.stdout
    assert (cloud.state(fixed), cloud.state(broken)) == (State.QUEUED, State.DEAD)
    assert len(cloud.bodies()) == 1


def test_a_type_without_dead_jobs_is_answered_with_the_types_that_have_some(cloud: Cloud) -> None:
    cloud.dead_job(type="mail.welcome")
    cloud.dead_job(type="mail.remind")
    result = run("redrive", "--type", "nope", "--dry-run")
    assert "No dead job has the type nope. The dead jobs have: mail.remind, mail.welcome." in result.stderr


def test_a_type_is_answered_when_no_job_is_dead(cloud: Cloud) -> None:
    assert (
        "The dead jobs have: nothing, because no job is dead." in run("redrive", "--type", "nope", "--dry-run").stderr
    )


def test_with_ids_and_a_type_a_job_must_match_both(cloud: Cloud) -> None:
    one, other = cloud.dead_job(type="a"), cloud.dead_job(type="b")
    result = run("redrive", one.id, other.id, "--type", "a", "--yes")
    assert (cloud.state(one), cloud.state(other)) == (State.QUEUED, State.DEAD)
    assert f"Skipped {other.id}: the other options exclude it" in result.stderr
    assert result.exit_code == 0


def test_ids_that_match_no_dead_job_are_an_error(cloud: Cloud) -> None:
    result = run("redrive", "typo", "--yes")
    assert result.exit_code == 1
    assert "these IDs match no dead job" in result.stderr


def test_a_repeat_finds_no_dead_job_and_changes_nothing(cloud: Cloud) -> None:
    cloud.dead_job()
    run("redrive", "--all", "--no-probe", "--yes")
    before = cloud.contents()
    result = run("redrive", "--all", "--no-probe", "--yes")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["Nothing was changed."]
    assert cloud.contents() == before


def test_jobs_of_a_group_return_in_their_order(cloud: Cloud) -> None:
    """However they died: several workers report at once, and clocks differ."""
    jobs = [cloud.store.insert_if_absent(a_job(group="parcels")) for _ in range(15)]
    for number, job in enumerate(jobs):
        running = claimed(cloud.store, stored(cloud.store, job))
        cloud.store.settle(running, SETTLEMENTS[State.DEAD], now=NOW - number % 4 * SECOND)
        cloud.store.advance(job.tenant, "parcels", now=NOW)

    assert run("redrive", "--all", "--no-probe", "--yes").exit_code == 0

    returned = sorted((stored(cloud.store, job) for job in jobs), key=lambda job: job.group.sequence or 0)
    assert [job.id for job in returned] == [job.id for job in jobs]


def test_a_busy_group_does_not_end_the_command(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    busy, calm = cloud.dead_job(group="busy"), [cloud.dead_job() for _ in range(3)]
    redrive = DynamoJobStore.redrive

    def conflict(store: DynamoJobStore, job: Job, **how: Any) -> Job:
        if job.id == busy.id:
            raise TransactionConflictError("others were faster")
        return redrive(store, job, **how)

    monkeypatch.setattr(DynamoJobStore, "redrive", conflict)

    result = run("redrive", "--all", "--no-probe", "--yes")

    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == "Redrove 3 of 4 jobs. Left 1 job of busy groups."
    assert busy.id in result.stderr
    assert {cloud.state(job) for job in calm} == {State.QUEUED}


def test_a_dry_run_prints_the_plan_to_stdout_and_changes_nothing(cloud: Cloud) -> None:
    jobs = [cloud.dead_job(type="a") for _ in range(6)] + [cloud.dead_job(type="b")]
    cloud.write("malformed")
    before = cloud.contents()
    result = run("redrive", "--all", "--dry-run")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "7 dead jobs to redrive:"
    assert [line.split() for line in lines[2:4]] == [
        ["a", "ValueError:", "no", "such", "thing", "6"],
        ["b", "ValueError:", "no", "such", "thing", "1"],
    ]
    assert sum(line.strip() in {job.id for job in jobs} for line in lines) == 5
    assert lines[-1] == "Nothing was changed."
    assert cloud.contents() == before


@pytest.mark.parametrize("arguments", [[], ["--yes"], ["--all", "--type", "a"], ["--all", "some-id"]])
def test_an_empty_or_contradictory_selection_is_wrong_usage(cloud: Cloud, arguments: list[str]) -> None:
    assert run("redrive", *arguments).exit_code == 2


def test_without_a_terminal_it_requires_yes(cloud: Cloud) -> None:
    job = cloud.dead_job()
    result = run("redrive", "--all", typed="y\n")
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert cloud.state(job) is State.DEAD


@pytest.mark.usefixtures("interactive")
def test_the_confirmation_defaults_to_no(cloud: Cloud) -> None:
    job = cloud.dead_job()
    for answer in ("n\n", "\n"):
        result = run("redrive", "--all", typed=answer)
        assert result.exit_code == 0
        assert "Redrive 1 job? [y/N]" in result.stderr
        assert not result.stdout
        assert cloud.state(job) is State.DEAD
    assert run("redrive", "--all", typed="y\n").exit_code == 0
    assert cloud.state(job) is State.QUEUED


@pytest.mark.usefixtures("interactive")
def test_ctrl_c_or_ctrl_d_at_the_confirmation_changes_nothing(cloud: Cloud) -> None:
    job = cloud.dead_job()
    assert run("redrive", "--all", typed="").exit_code == 130
    assert cloud.state(job) is State.DEAD


@pytest.mark.usefixtures("interactive")
def test_an_empty_plan_needs_no_confirmation(cloud: Cloud) -> None:
    cloud.write("malformed")
    assert "[y/N]" not in run("redrive", "--all").stderr
    assert cloud.bodies() == ["malformed"]


@pytest.mark.usefixtures("terminal")
def test_a_terminal_shows_a_progress_bar_on_stderr(cloud: Cloud) -> None:
    for _ in range(3):
        cloud.dead_job()
    result = run("redrive", "--all", "--no-probe", "--yes")
    assert "3/3" in click.unstyle(result.stderr)
    assert "3/3" not in result.stdout


def test_a_pipe_shows_no_progress_bar(cloud: Cloud) -> None:
    cloud.dead_job()
    assert "1/1" not in run("redrive", "--all", "--no-probe", "--yes").stderr


@pytest.fixture
def calls(cloud: Cloud) -> Iterator[Counter[str]]:
    """The calls to AWS of the command line, counted."""
    counted: Counter[str] = Counter()

    def note(model: Any, **_: object) -> None:
        counted[model.name] += 1

    services = [clients.dynamodb(), clients.sqs()]
    for service in services:
        service.meta.events.register("before-call", note)
    yield counted
    for service in services:
        service.meta.events.unregister("before-call", note)


@pytest.mark.parametrize("full", [False, True])
def test_one_job_takes_five_calls_and_none_to_a_queue(cloud: Cloud, calls: Counter[str], *, full: bool) -> None:
    """The job is read for the plan and for the redrive, and the audit entry takes two writes."""
    job = cloud.dead_job(dead_letter=False)
    if full:
        for _ in range(20):
            cloud.dead_job()
        for number in range(100):
            cloud.write(f"message {number}")
    _, queue, _ = cloud.contents()
    assert queue["ApproximateNumberOfMessages"] == ("120" if full else "0")
    calls.clear()

    assert run("redrive", job.id, "--tenant", job.tenant, "--yes").exit_code == 0

    assert cloud.state(job) is State.QUEUED
    calls["GetItem"] -= 1  # of the line above
    assert +calls == {"BatchGetItem": 2, "UpdateItem": 2, "PutItem": 1}


def test_without_its_tenant_a_job_is_looked_up_in_the_keys_of_the_index(cloud: Cloud, calls: Counter[str]) -> None:
    """One query for each partition, and only the document of the job."""
    job = cloud.dead_job()
    for _ in range(20):
        cloud.dead_job()
    calls.clear()

    assert run("redrive", job.id, "--yes").exit_code == 0

    assert +calls == {"Query": 2 * LARGEST_INDEX_SHARDS, "BatchGetItem": 2, "UpdateItem": 2, "PutItem": 1}


def _failed(cloud: Cloud, message: str, **changes: Any) -> Job:
    job = cloud.dead_job(**changes)
    job = replace(job, errors=(replace(job.errors[-1], message=message),))
    cloud.table.put(job, attention={"S": "dead#0"}, attention_at={"N": str(int(NOW.timestamp() * 1000))})
    return job


@pytest.mark.parametrize(
    ("options", "redriven"),
    [
        (["--tenant", "a:two"], {"two"}),
        (["--type", "other", "--type", "none"], {"other"}),
        (["--fingerprint", "ValueError: row <n> is gone"], {"row"}),
        (["--error", "ValueError", "--tag", "blue"], {"tagged"}),
        (["--death", "gave up"], set()),
        (["--death", "permanent error", "--tag", "blue"], {"tagged"}),
        (["--submitted-since", "2046-01-01T00:00:00Z"], set()),
        (["--ended-until", "2045-01-01T00:00:00Z"], set()),
        (
            ["--ended-since", "2045-03-04T00:00:00Z", "--ended-until", "2045-03-05T00:00:00Z", "--type", "other"],
            {"other"},
        ),
    ],
)
def test_a_job_must_match_every_option(cloud: Cloud, options: list[str], redriven: set[str]) -> None:
    jobs = {
        "two": cloud.dead_job(tenant="a:two"),
        "other": cloud.dead_job(type="other"),
        "row": _failed(cloud, "row 17 is gone"),
        "tagged": cloud.dead_job(tags=("blue",)),
    }

    assert run("redrive", *options, "--no-probe", "--yes").exit_code == 0

    assert {name for name, job in jobs.items() if cloud.state(job) is State.QUEUED} == redriven


def test_a_limit_takes_the_earliest_deaths_and_a_repeat_goes_on(cloud: Cloud) -> None:
    jobs = [cloud.dead_job() for _ in range(5)]
    assert run("redrive", "--all", "--limit", "3", "--no-probe", "--yes").stdout == "Redrove 3 of 3 jobs.\n"
    assert Counter(cloud.state(job) for job in jobs) == {State.QUEUED: 3, State.DEAD: 2}
    assert run("redrive", "--all", "--limit", "3", "--no-probe", "--yes").stdout == "Redrove 2 of 2 jobs.\n"


def test_a_job_that_dies_again_meanwhile_is_redriven_once(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command reads the index to its end, and so meets the job again."""
    redrive = DynamoJobStore.redrive
    redriven: Counter[str] = Counter()

    def redrive_and_die(store: DynamoJobStore, job: Job, **how: Any) -> Job:
        queued = redrive(store, job, **how)
        redriven[job.id] += 1
        cloud.store.settle(claimed(store, queued), SETTLEMENTS[State.DEAD], now=NOW + SECOND)
        return queued

    monkeypatch.setattr(DynamoJobStore, "redrive", redrive_and_die)
    monkeypatch.setattr("tidemill.cli.control.parallel_writes.BATCH", 1)
    # The index is read in pages of one job, so that it holds the jobs that died again.
    monkeypatch.setattr("tidemill.dynamodb.job_reader._BATCH_GET_LIMIT", 1)
    jobs = [cloud.dead_job() for _ in range(3)]

    assert run("redrive", "--all", "--no-probe", "--yes").exit_code == 0

    assert redriven == {job.id: 1 for job in jobs}
