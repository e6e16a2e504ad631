"""`list`: the caller's own jobs, newest first, page after page."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import click
import pytest

from tests.integration.cli.conftest import run
from tests.integration.cli.loopback import Answer, Loopback, Request
from tests.support.deployed_functions import Mill
from tidemill.names import Env

ID = "01a1faf4-3139-7af6-9982-09538b03026f"


def a_job(**changes: Any) -> dict[str, Any]:
    job = {
        "id": ID,
        "type": "a.b",
        "state": "running",
        "lane": "bulk",
        "tags": ["a", "b"],
        "attempt": 2,
        "progress": {"done": 3, "total": 10, "at": None},
        "created_at": (datetime.now(UTC) - timedelta(hours=2, minutes=1)).isoformat(),
    }
    return {**job, **changes}


def queries(server: Loopback) -> list[dict[str, list[str]]]:
    return [parse_qs(urlsplit(request.path).query) for request in server.requests]


def test_each_job_is_a_line(server: Loopback) -> None:
    server.answers(200, {"jobs": [a_job()], "unreadable": [], "cursor": None})
    result = run("list")
    assert (result.exit_code, result.stderr) == (0, "")
    title, line = result.stdout.splitlines()
    assert title.split() == ["ID", "TYPE", "STATE", "LANE", "ATTEMPTS", "PROGRESS", "AGE", "TAGS"]
    assert re.split(" {2,}", line) == [ID, "a.b", "running", "bulk", "2", "3 of 10", "2h", "a, b"]


def test_a_job_that_cannot_be_read_is_reported_and_the_others_are_listed(server: Loopback) -> None:
    unreadable = {"id": "broken\x1b[2J", "error": "the document has no type"}
    server.answers(200, {"jobs": [a_job()], "unreadable": [unreadable], "cursor": None})
    result = run("list")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 2)
    assert result.stderr == "Job broken\\x1b[2J cannot be read; an operator must repair it: the document has no type\n"


def test_the_filters_go_to_the_api_and_a_duration_counts_back_from_now(server: Loopback) -> None:
    server.answers(200, {"jobs": [], "unreadable": [], "cursor": None})
    times = ("--since", "2h", "--until", "2099-01-31T13:00:00+01:00")
    result = run("list", "--state", "dead", "--type", "a b&c", "--tag", "c:7", *times)
    assert result.exit_code == 0
    assert "No matching jobs." in result.stderr
    (query,) = queries(server)
    since = datetime.fromisoformat(query.pop("since")[0])
    assert abs(datetime.now(UTC) - timedelta(hours=2) - since) < timedelta(minutes=1)
    assert (query.pop("until"), query.pop("limit")) == (["2099-01-31T12:00:00.000Z"], ["20"])
    assert query == {"state": ["dead"], "type": ["a b&c"], "tag": ["c:7"]}


def test_the_default_range_is_30_days(server: Loopback) -> None:
    server.answers(200, {"jobs": [], "unreadable": [], "cursor": None})
    run("list", "--until", "2026-01-31T12:00:00Z")
    run("list", "--all")
    bounded, unbounded = queries(server)
    assert bounded["since"] == ["2026-01-01T12:00:00.000Z"]
    assert "since" not in unbounded


class Pages:
    """An API with pages of these sizes, and a cursor on all but the last."""

    def __init__(self, *sizes: int) -> None:
        self._left = list(sizes)

    def respond(self, _: Request) -> Answer:
        size = self._left.pop(0)
        cursor = f"to {len(self._left)}" if self._left else None
        return 200, {}, json.dumps({"jobs": [a_job()] * size, "unreadable": [], "cursor": cursor}).encode()


def test_all_follows_the_cursor_over_short_and_empty_pages(server: Loopback) -> None:
    server.respond = Pages(100, 0, 7).respond
    result = run("list", "--all", "--json")
    assert len(result.stdout.splitlines()) == 107
    assert [query.get("cursor") for query in queries(server)] == [None, ["to 2"], ["to 1"]]
    assert {query["limit"][0] for query in queries(server)} == {"100"}


def test_a_limit_stops_the_listing_and_prints_a_note(server: Loopback) -> None:
    server.respond = Pages(100, 30, 20, 5).respond
    result = run("list", "--limit", "150")
    assert len(result.stdout.splitlines()) == 151
    assert [query["limit"] for query in queries(server)] == [["100"], ["50"], ["20"]]
    assert "More jobs may exist: --all" in result.stderr


def test_without_a_listing_the_error_names_the_commands_that_work(server: Loopback) -> None:
    server.answers(404, {"type": "urn:tidemill:problem:listing-off", "title": "Not Found", "detail": "no index"})
    result = run("list")
    assert result.exit_code == 1
    assert "keeps no list of jobs" in result.stderr
    for still in ("tidemill get ID", "tidemill watch ID", "tidemill dlq list", "-c listing=on"):
        assert still in result.stderr


@pytest.mark.parametrize("time", ["yesterday", "2026-01-31T12:00:00", "5", "-2h", "1.5h", "999999999999d"])
def test_an_invalid_time_is_wrong_usage(server: Loopback, time: str) -> None:
    assert run("list", f"--since={time}").exit_code == 2
    assert not server.requests


@pytest.mark.usefixtures("terminal")
def test_a_terminal_of_80_columns_does_not_truncate_ids(server: Loopback, environment: pytest.MonkeyPatch) -> None:
    server.answers(
        200, {"jobs": [a_job(type="a.rather.long.type.of.job.for.a.terminal")], "unreadable": [], "cursor": None}
    )
    lines = click.unstyle(run("list").stdout).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith(ID) for line in lines)
    environment.setenv("COLUMNS", "40")
    assert ID in run("list").stdout


def test_submitted_jobs_are_listed_newest_first_and_by_state(behind: Mill) -> None:
    ids = [behind.accepted({"n": n}) for n in range(5)]
    assert [json.loads(line)["id"] for line in run("list", "--json").stdout.splitlines()] == ids[::-1]
    assert [json.loads(line)["id"] for line in run("list", "--json", "--limit", "2").stdout.splitlines()] == ids[:2:-1]
    run("cancel", ids[1], "--yes")
    (cancelled,) = run("list", "--json", "--state", "cancelled").stdout.splitlines()
    assert json.loads(cancelled)["id"] == ids[1]


@pytest.mark.parametrize("option", ["--error=OSError", "--cursor=abc", "--read-units=10", "--most-read-units=10"])
def test_the_options_of_a_scan_are_for_operators(server: Loopback, option: str) -> None:
    result = run("list", option)

    name, _, _ = option.partition("=")
    assert (result.exit_code, server.requests) == (2, [])
    assert f"without --tenant or --all-tenants, leave out {name}" in " ".join(result.stderr.split())


def test_an_unknown_state_is_wrong_usage_and_the_error_lists_the_states(server: Loopback) -> None:
    result = run("list", "--state", "asleep")
    assert result.exit_code == 2
    assert "'scheduled'" in result.stderr
    assert not server.requests


def test_a_range_that_ends_before_it_starts_is_wrong_usage(server: Loopback) -> None:
    assert run("list", "--since", "2h", "--until", "3h").exit_code == 2
    assert not server.requests


def test_a_fault_found_by_the_api_is_printed_once(behind: Mill) -> None:
    result = run("list", "--type", "x" * 101)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[1:] == ["  #/type: String should have at most 100 characters"]


def test_the_command_recognises_the_answer_of_a_stage_without_a_listing(
    behind: Mill, environment: pytest.MonkeyPatch
) -> None:
    environment.setenv(Env.LISTING, "")
    assert "keeps no list of jobs" in run("list").stderr
