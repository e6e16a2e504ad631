"""What is printed and drawn, and that a system which is not installed is named with the reason."""

import json
import os
import xml.etree.ElementTree as ET
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.peers import installed, phases, postgres
from tests.benchmarks.peers.cpu import Meter, tree
from tests.benchmarks.peers.picture import svg
from tests.benchmarks.peers.report import markdown
from tests.benchmarks.peers.run import measure
from tests.benchmarks.peers.system import Running, System

CLEAN = {
    "jobs": 300,
    "pickup": {"p50": 20.0, "p95": 40.0, "p99": 1234.0},
    "end_to_end": {"p50": 70.0, "p95": 90.0, "p99": float("nan")},
    "unfinished": 2,
    "refused": 1,
    "extra_begins": 4,
    "extra_ends": 3,
    "seconds": 20.0,
    "offered": 15.0,
    "cpu": {"producer": 1.25, "workers": 3.5, "service": 2.0},
    "round_trips": float("nan"),
}
FOUND: dict[str, Any] = {
    "load": 1.25,
    "processors": 2,
    "systems": {"Some & Queue": {"setting": "as usual", "guarantee": "at least once", "phases": {"clean": CLEAN}}},
    "skipped": {"Other queue": "PostgreSQL is not installed"},
}


def rows() -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in markdown(FOUND).splitlines() if line.startswith("| ")]


def test_the_tables_show_latencies_counts_and_costs() -> None:
    latencies, counts_and_costs, stated = (row for row in rows() if row[0] == "Some & Queue")

    assert latencies[1:] == ["20", "40", "1,234", "70", "90", "–"]  # noqa: RUF001 - a dash
    assert counts_and_costs[1:8] == ["300", "15", "14.8", "2", "1", "4", "3"]
    assert counts_and_costs[8:] == ["1.25", "3.50", "2.00", "–"]  # noqa: RUF001 - a dash
    assert stated[1:] == ["as usual", "at least once"]


def test_a_phase_that_did_not_run_has_no_table() -> None:
    assert not [row for row in rows() if row[0].startswith("burst")]


def test_step_functions_and_durable_functions_have_their_list_price() -> None:
    prices = dict(row for row in rows() if len(row) == 2)

    assert prices["Step Functions, standard workflow"] == "25.00"
    assert prices["Lambda durable functions"] == "8.00"


def test_a_skipped_system_is_named_with_its_reason() -> None:
    assert "Skipped Other queue: PostgreSQL is not installed." in markdown(FOUND)


def test_a_system_that_lacks_something_is_not_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def start(stack: ExitStack, folder: Path) -> Running:
        raise AssertionError("started")

    lacking = System(name="Absent", setting="", guarantee="", lacks=lambda: "it is not installed", start=start)

    found = measure([lacking], tmp_path)

    assert (found["systems"], found["skipped"]) == ({}, {"Absent": "it is not installed"})
    assert capsys.readouterr().err == "peers: skipped Absent: it is not installed\n"


def test_the_reason_for_a_missing_postgresql_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "binaries", lambda: None)

    assert installed.without_postgres().startswith("PostgreSQL is not installed")


def test_packages_that_cannot_be_installed_are_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text("no-such-package==1\n")
    monkeypatch.setattr(installed, "LOCK", lock)
    monkeypatch.setattr(installed, "VENV", tmp_path / "venv")
    monkeypatch.setattr(installed, "failure", lambda *_: "its packages cannot be installed: no network")

    assert installed.without_python_packages() == "its packages cannot be installed: no network"
    assert not (tmp_path / "venv" / "installed.txt").exists()


def test_a_failed_command_is_explained_by_its_last_line() -> None:
    assert installed.failure(["/bin/sh", "-c", "echo one >&2; echo two >&2; exit 3"]).endswith("installed: two")
    assert not installed.failure(["/bin/sh", "-c", "exit 0"])


def test_the_picture_is_xml_with_a_mark_for_each_percentile() -> None:
    drawn = ET.fromstring(svg(FOUND))

    assert len(drawn.findall(".//{http://www.w3.org/2000/svg}circle")) == 2


def test_the_capacity_is_what_the_burst_stored_in_its_time() -> None:
    assert phases.capacity_of(CLEAN) == 297 / 20
    assert phases.capacity_of({**CLEAN, "unfinished": 299}) == phases.RATE


@pytest.mark.skipif(bool(installed.without_proc()), reason=installed.without_proc())
def test_the_cpu_time_of_an_ended_process_still_counts() -> None:
    pids = [os.getpid()]
    meter = Meter(lambda: pids)
    seconds = meter.sample()
    pids.clear()

    assert meter.sample() == seconds
    assert tree(os.getpid()) >= seconds > 0


def test_the_lock_of_graphile_worker_has_a_digest_for_each_package_and_names_no_registry() -> None:
    lock = json.loads((installed.GRAPHILE / "package-lock.json").read_text())

    packages = [each for name, each in lock["packages"].items() if name]
    assert packages
    assert all("integrity" in each and "resolved" not in each for each in packages)
