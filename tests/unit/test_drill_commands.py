"""The commands of the runbook as a drill runs them, and the log of the alarms as it reads them."""

from pathlib import Path
from typing import Any

import pytest

from demo.drills import aws_command
from demo.drills.alarm_watch import AlarmLog, alarm_id
from demo.drills.incidents import DRILLS
from stacks.composition import ROOT
from tidemill.local.environment import Keys
from tidemill.local.signed_caller import Caller

STARTED = "watching 60 alarms\n"
ON = "12:24:30 ALARM part     Tidemill-local-Pipeline-Established1F49010C-94D77CDE63695: Wake was called.\n"
PAGE = "12:24:30 ALARM page     Tidemill-local-Pipeline-LateCanary: A canary job is late. Do: runbook.md#late-canary\n"
TICKET = "12:24:30 ALARM ticket   Tidemill-local-Pipeline-LostMessages8A0C9B7D: Reconcile found overdue jobs.\n"
RESOLVED = "12:24:36 OK    page     Tidemill-local-Pipeline-LateCanary: it was ALARM\n"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The operations that a command calls, with their parameters."""
    found: list[tuple[str, Any]] = []
    monkeypatch.setattr(
        "botocore.client.BaseClient._make_api_call", lambda _, name, parameters: found.append((name, parameters))
    )
    return found


def _run(*words: str) -> None:
    aws_command.run(words, Caller("http://127.0.0.1:1", Keys(access_key="key", secret_key="secret")).client)


@pytest.mark.parametrize(
    ("options", "parameters"),
    [
        (("--enabled",), {"Enabled": True}),
        (("--no-enabled",), {"Enabled": False}),
        (("--batch-size", "10"), {"BatchSize": 10}),
        (("--filter-criteria", "{}"), {"FilterCriteria": {}}),
        (("--scaling-config", "MaximumConcurrency=5"), {"ScalingConfig": {"MaximumConcurrency": 5}}),
        (("--cli-input-json", '{"Enabled": true}'), {"Enabled": True}),
    ],
)
def test_an_option_becomes_a_parameter(
    options: tuple[str, ...], parameters: dict[str, Any], sent: list[tuple[str, Any]]
) -> None:
    _run("lambda", "update-event-source-mapping", "--uuid", "u", *options)
    assert sent == [("UpdateEventSourceMapping", {"UUID": "u", **parameters})]


@pytest.mark.parametrize(
    "words", [("lambda", "enable-mapping"), ("lambda", "update-event-source-mapping", "--no-such-thing")]
)
def test_what_the_service_does_not_have_is_refused(words: tuple[str, ...], sent: list[tuple[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"no operation enable-mapping|no parameter --no-such-thing"):
        _run(*words)
    assert sent == []


def test_a_command_waits_for_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = ["CREATING", "ACTIVE"]
    answers = ({"Table": {"TableStatus": status}} for status in statuses)
    asked: list[tuple[str, Any]] = []

    def answer(_: object, name: str, parameters: dict[str, Any]) -> dict[str, Any]:
        asked.append((name, parameters))
        return next(answers)

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", answer)
    monkeypatch.setattr("botocore.waiter.time.sleep", lambda _: None)
    _run("dynamodb", "wait", "table-exists", "--table-name", "jobs")
    assert asked == [("DescribeTable", {"TableName": "jobs"})] * len(statuses)


def test_a_state_that_the_service_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="Waiter does not exist: table_sleeps"):
        _run("dynamodb", "wait", "table-sleeps", "--table-name", "jobs")


def _log(tmp_path: Path, text: str) -> AlarmLog:
    (tmp_path / "alarms.log").write_text(text)
    return AlarmLog(tmp_path / "alarms.log", minute_seconds=60, sleep=lambda _: None)


def test_the_log_says_which_alarms_fire(tmp_path: Path) -> None:
    log = _log(tmp_path, "")
    log.next()
    assert log.evaluations == 0
    log = _log(tmp_path, STARTED + TICKET)
    log.next()
    assert log.evaluations == 1
    assert (log.firing, log.pages) == (frozenset({"LostMessages"}), frozenset())
    with (tmp_path / "alarms.log").open("a") as file:
        file.write(ON + PAGE)
    log.next()
    assert (log.firing, log.pages) == (frozenset({"LateCanary", "LostMessages"}), frozenset({"LateCanary"}))


def test_a_page_that_resolved_has_fired(tmp_path: Path) -> None:
    log = _log(tmp_path, PAGE + RESOLVED)
    log.next()
    assert (log.firing, log.pages) == (frozenset(), frozenset({"LateCanary"}))
    log.forget_pages()
    log.next()
    assert log.pages == frozenset()


def test_half_a_line_is_read_when_it_is_whole(tmp_path: Path) -> None:
    log = _log(tmp_path, PAGE[:-20])
    log.next()
    assert log.firing == frozenset()
    with (tmp_path / "alarms.log").open("a") as file:
        file.write(PAGE[-20:])
    log.next()
    assert log.firing == {"LateCanary"}


def test_an_alarm_of_another_stack_keeps_its_name() -> None:
    assert alarm_id("Tidemill-local-Pipeline-FunctionErrorsworkers0A1B2C3D-94D77CDE63695") == "FunctionErrorsworkers"
    assert alarm_id("Tidemill-local-Shortener-ApiErrors0A1B2C3D-1") == "Tidemill-local-Shortener-ApiErrors"


def test_the_page_of_drills_has_the_other_pages_of_each_drill() -> None:
    page = (ROOT / "docs" / "operations" / "drills.md").read_text()
    _, _, section = page.partition("## Other pages")
    rows = [line.split(" | ") for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    assert {name.strip("| `"): pages for name, pages, _ in rows} == {
        drill.name: ", ".join(sorted(drill.pages)) for drill in DRILLS.values() if drill.pages
    }


def test_the_page_of_drills_has_each_drill_with_its_alarm_and_heading() -> None:
    page = (ROOT / "docs" / "operations" / "drills.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `") and "runbook.md" in line]
    assert [(name.strip("| `"), alarm, place.partition("#")[2].rstrip(") |")) for name, _, alarm, place in rows] == [
        (drill.name, drill.alarm or "none: `tidemill status`", drill.heading) for drill in DRILLS.values()
    ]
