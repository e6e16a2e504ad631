"""Percentiles, and what counts as lost or done twice."""

import math
from pathlib import Path

import pytest

from tests.benchmarks.peers.journal import Journal
from tests.benchmarks.peers.latency import outcome, percentile
from tests.benchmarks.peers.load import at_once
from tests.benchmarks.peers.work import note, work


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (95, 95), (99, 99), (100, 100), (1, 1)])
def test_a_percentile_is_the_value_at_the_nearest_rank(percent: int, value: int) -> None:
    assert percentile(list(range(100, 0, -1)), percent) == value


def test_the_percentiles_of_one_value_are_that_value_and_none_have_none() -> None:
    assert percentile([7.0], 99) == 7.0
    assert math.isnan(percentile([], 50))


def test_latencies_count_from_the_time_at_which_a_job_was_due(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.path.write_text("begin 1 100.5 9\nend 1 100.6 9\n")

    found = outcome(at_once(1, jobs=1, start=100), {1: 100.4}, journal.read(), {1: 100.75})

    assert found.pickup == pytest.approx({"p50": 500, "p95": 500, "p99": 500})
    assert found.end_to_end == pytest.approx({"p50": 750, "p95": 750, "p99": 750})
    assert found.seconds == 0.75


def test_a_job_is_unfinished_or_refused_and_a_second_run_may_have_a_second_effect(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.path.write_text(
        "begin 1 100.1 9\nend 1 100.2 9\n"  # once
        "begin 2 100.1 9\nbegin 2 105.1 8\nend 2 105.2 8\n"  # its first worker was killed
        "begin 3 100.1 9\nend 3 100.2 9\nbegin 3 105.1 8\nend 3 105.2 8\n"  # its worker was killed after the effect
        "begin 4 100.1 9\n"  # lost
        "begin 99 100.1 9\nbegin 99 100.1 9\n"  # of the warm-up
    )

    found = outcome(
        at_once(1, jobs=5, start=100), dict.fromkeys((1, 2, 3, 4), 100.0), journal.read(), {1: 101, 2: 106, 3: 106}
    )

    assert (found.jobs, found.unfinished, found.refused) == (5, 1, 1)
    assert (found.extra_begins, found.extra_ends) == (2, 1)


def test_the_process_that_began_the_last_job_is_known(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.path.write_text("begin 1 100.1 9\nbegin 2 100.2 8\nend 1 100.3 9\n")

    journal.read()

    assert journal.last_begun_by == 8


def test_work_notes_its_begin_and_its_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")

    work(3, 0, str(journal.path))

    notes = journal.read()
    assert notes.of("begin")[3][0] <= notes.of("end")[3][0]


def test_a_half_written_line_is_read_later(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    assert journal.read().count("ready") == 0
    journal.path.write_text("ready 0 100.0 9\nready 0 10")
    assert journal.read().count("ready") == 1

    with journal.path.open("a") as file:
        file.write("0.0 8\n")
    note("ready", journal=str(journal.path))

    assert journal.read().count("ready") == 3
