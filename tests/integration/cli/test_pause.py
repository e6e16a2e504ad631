"""`pause` and `resume`, and what `status`, `explain` and `get` say about a pause."""

import json
import shlex
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW, SECOND, TENANT, brought_to
from tidemill.domain.history import Why
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.pauses import Target
from tidemill.domain.waiting.waiting import Wait
from tidemill.dynamodb.passes.job_scan import DynamoJobScan


def parked(cloud: Cloud, target: str = "type=test.job") -> Job:
    """Park the job as publish does."""
    line = Target.parse(target).line
    return cloud.store.park(
        brought_to(cloud.store, State.QUEUED), Wait(cause=line.cause, key=line.key, since=NOW), now=NOW + SECOND
    )


def one(*arguments: str) -> Any:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def settings() -> Any:
    return one("config", "get")["settings"]


def test_a_pause_is_shown_with_its_record_and_the_jobs_that_wait(cloud: Cloud) -> None:
    result = run(
        *("pause", "type=test.job", "--reason", "bad deploy", "--until", "2099-01-31T12:00Z", "--reject-new", "--yes")
    )
    assert (result.exit_code, result.stdout) == (0, "paused type=test.job\n")
    assert "Pause type=test.job until 2099-01-31 12:00:00Z, and refuse new jobs." in result.stderr
    parked(cloud)

    shown = run("status").stdout.splitlines()
    at = next(number for number, line in enumerate(shown) if line.startswith("PAUSED"))
    assert shown[at].startswith("PAUSED: type=test.job by arn:aws:sts:")
    assert shown[at].endswith(", until 2099-01-31 12:00:00Z, 1 waiting, new jobs refused: bad deploy")
    assert shown[at + 1] == "  tidemill resume type=test.job"
    (pause,) = one("status")["pauses"]
    assert pause.pop("by").startswith("arn:aws:sts:")
    assert pause.pop("since")
    assert pause == {
        "target": "type=test.job",
        "until": "2099-01-31T12:00:00.000Z",
        "reason": "bad deploy",
        "reject_new": True,
        "waiting": 1,
        "waiting_exact": True,
    }


def test_explain_names_the_pause_until_it_ends(cloud: Cloud) -> None:
    run("pause", "type=test.job", "--reason", "bad deploy", "--yes")
    job = parked(cloud)

    explained = one("explain", job.id)
    assert explained["reason"] == "paused"
    assert explained["why"][0].startswith("type=test.job is paused by arn:aws:sts:")
    assert explained["why"][0].endswith("until it is resumed: bad deploy. It is the first of its line.")
    assert "`tidemill resume type=test.job` ends the pause." in explained["why"]
    assert any(
        entry["what"] == "it was parked, and waits for the end of its pause type=test.job"
        for entry in (explained["history"])
    )
    assert explained["until"] is None
    shown = one("get", job.id, "--tenant", TENANT)
    assert (shown["wait"]["cause"], shown["wait"]["key"]) == ("pause", "type=test.job")
    assert shown["history"][-1]["cause"] == Why.PAUSED

    run("resume", "type=test.job", "--yes")
    assert one("explain", job.id)["reason"] == "resumed"


@pytest.mark.usefixtures("cloud")
def test_a_pause_of_each_kind_can_be_named() -> None:
    for arguments in (("lane=default",), ("tenant=a",), ("group=x y", "--tenant", "a"), ('limit=["t", ""]',)):
        assert run("pause", *arguments, "--yes").exit_code == 0
    assert set(settings()) == {"pauses.lane=default", "pauses.tenant=a", "pauses.group=a x y", 'pauses.limit=["t", ""]'}
    assert run("resume", "group=x y", "--tenant", "a", "--yes").stdout == "resumed group=a x y\n"
    assert run("resume", "group=a x y", "--yes").exit_code == 1
    assert "pauses.group=a x y" not in settings()


@pytest.mark.usefixtures("cloud")
def test_a_second_pause_replaces_the_first() -> None:
    run("pause", "type=a", "--yes")
    assert one("pause", "type=a", "--until", "2099-01-31T12:00Z", "--rate", "3", "--yes") == {
        "paused": "type=a",
        "until": "2099-01-31T12:00:00.000Z",
        "version": 2,
    }
    assert settings()["pauses.type=a"]["value"] == {"rate": 3}


def test_resume_says_how_many_jobs_wait_and_how_fast_they_start(cloud: Cloud) -> None:
    run("pause", "type=test.job", "--rate", "3", "--yes")
    for _ in range(2):
        parked(cloud)

    result = run("resume", "type=test.job", "--yes")

    assert (result.exit_code, result.stdout) == (0, "resumed type=test.job\n")
    assert "Resume type=test.job: 2 parked jobs, 3 a second." in result.stderr
    assert settings() == {}


@pytest.mark.usefixtures("cloud", "interactive")
@pytest.mark.parametrize("command", ["pause", "resume"])
def test_a_declined_command_changes_nothing(command: str) -> None:
    if command == "resume":
        run("pause", "type=a", "--yes")
    before = settings()

    result = run(command, "type=a", typed="n\n")

    assert (result.exit_code, "Nothing was changed." in result.stderr) == (0, True)
    assert settings() == before


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("pause", "mail", "--yes"), 2, "names nothing to pause: use lane=…, type=…, tenant=…, group=…, limit=…"),
        (("pause", "group=x", "--yes"), 2, "has no tenant: a group belongs to one; name it with --tenant"),
        (("pause", "type=x", "--tenant", "a", "--yes"), 2, "--tenant is for a group"),
        (("pause", "lane=slow", "--yes"), 2, "no lane is called 'slow'"),
        (("pause", "limit=x", "--reject-new", "--yes"), 2, "cannot refuse by limit key"),
        (("pause", "type=x"), 2, "pass --yes"),
        (("pause", "type=x", "--rate", "101", "--yes"), 2, "1<=x<=100"),
        (("resume", "type=x", "--yes"), 1, "Paused at present: nothing."),
    ],
)
def test_a_wrong_command_is_refused_with_its_fault(arguments: tuple[str, ...], code: int, complaint: str) -> None:
    result = run(*arguments)

    assert result.exit_code == code
    assert complaint in " ".join(result.stderr.split())
    assert settings() == {}


HOSTILE = "tenant=a'; touch owned; '"


def test_the_printed_command_is_one_word_of_a_shell_for_each_name(cloud: Cloud) -> None:
    job = parked(cloud, HOSTILE)
    run("pause", HOSTILE, "--yes")

    (printed,) = [line for line in run("status").stdout.splitlines() if line.startswith("  tidemill resume")]
    assert shlex.split(printed) == ["tidemill", "resume", HOSTILE]
    (explained,) = [line for line in one("explain", job.id)["why"] if "ends the pause" in line]
    assert shlex.split(explained.split("`")[1]) == ["tidemill", "resume", HOSTILE]
    assert run(*shlex.split(printed)[1:], "--yes").exit_code == 0


@pytest.mark.parametrize(
    ("target", "warning"),
    [
        ("type=test.jbo", "type=test.jbo may be misspelt: it is not periodic, and 4 items of the table hold"),
        ("schedule=reports", "no periodic type has this name; those of the stage are: none"),
        ('limit=["t"]', "no job has used this limit key"),
        ("type=test.job", None),
        ("tenant=anyone", None),
        ("lane=bulk", None),
    ],
)
def test_a_name_that_nothing_has_is_a_warning(cloud: Cloud, target: str, warning: str | None) -> None:
    brought_to(cloud.store, State.QUEUED)

    result = run("pause", target, "--yes", "--json")

    assert (result.exit_code, json.loads(result.stdout)["paused"]) == (0, target)
    assert ("Warning" in result.stderr) is (warning is not None)
    assert (warning or "") in result.stderr.replace("\n", " ")


@pytest.mark.usefixtures("cloud", "interactive")
def test_the_warning_comes_before_the_question() -> None:
    result = run("pause", "type=test.jbo", typed="n\n")

    assert result.stderr.index("may be misspelt") < result.stderr.index("Pause it now?")
    assert result.stderr.count("Warning") == 1
    assert settings() == {}


@pytest.mark.usefixtures("cloud")
def test_a_pause_acts_if_the_table_cannot_be_scanned(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no right"}}, "Scan")

    monkeypatch.setattr(DynamoJobScan, "page", denied)

    result = run("pause", "type=test.jbo", "--yes")

    assert (result.exit_code, result.stdout) == (0, "paused type=test.jbo\n")
    assert "pauses.type=test.jbo" in settings()


@pytest.mark.usefixtures("cloud", "terminal")
def test_a_terminal_shows_the_command_on_one_line_however_long() -> None:
    """It is to be copied, and a line break would be a part of the quoted name."""
    name = " ".join(["a"] * 60)
    run("pause", f"group={name}", "--tenant", TENANT, "--yes")
    run("config", "set", "types.a.long.name.of.a.type.that.has.many.words.in.it.max_attempts", "3", "--yes")
    shown = run("status").stdout.splitlines()
    assert f"  tidemill resume 'group={TENANT} {name}'" in shown
    assert "  tidemill config set types.a.long.name.of.a.type.that.has.many.words.in.it.max_attempts --remove" in shown
