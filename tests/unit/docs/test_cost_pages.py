"""The pages of cost and scale show what `tidemill cost` prints, and the model has the times of docs/performance.md."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.benchmarks import payload_places
from tests.support.document_blocks import page_of
from tidemill.cli.main import tidemill
from tidemill.cost import list_prices, measured
from tidemill.cost.profile import Profile

ROOT = Path(__file__).parents[3]
COST = (ROOT / "docs" / "operations" / "cost.md").read_text()
SCALE = (ROOT / "docs" / "operations" / "scale.md").read_text()
PERFORMANCE = (ROOT / "docs" / "performance.md").read_text()
ROWS = re.findall(r"^\| `(--[^`]+)` \| ([\d.]+) \|$", COST, re.MULTILINE)


@pytest.fixture(autouse=True)
def in_folder_without_app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(options: str) -> str:
    result = CliRunner().invoke(tidemill, ["cost", *shlex.split(options)], prog_name="tidemill")
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_page_shows_the_output_of_its_command() -> None:
    (options,) = re.findall(r"^\$ tidemill cost (.+)$", COST, re.MULTILINE)
    blocks = page_of(ROOT / "docs" / "operations" / "cost.md").blocks
    (shown,) = [block.text for block in blocks if block.text.startswith("A MILLION JOBS")]

    assert shown == printed(options)


@pytest.mark.parametrize(("options", "dollars"), ROWS, ids=[options for options, _ in ROWS])
def test_a_row_of_the_page_has_the_total_of_its_options(options: str, dollars: str) -> None:
    assert f"{json.loads(printed(f'{options} --json'))['per_million_jobs']['total']:.2f}" == dollars


@pytest.mark.parametrize(
    ("row", "model"),
    [
        ("producer", measured.SUBMIT_CPU_MS),
        ("publisher", measured.PUBLISH_CPU_MS),
        ("consumer", measured.WORK_CPU_MS),
        ("consumer, grouped commit", measured.GROUPED_WORK_CPU_MS),
    ],
)
def test_the_model_has_the_cpu_times_of_the_page_of_performance(row: str, model: float) -> None:
    """After a run on a quiet machine, change `tidemill/cost/measured.py` with the table of the model."""
    (tidemill_ms,) = re.findall(rf"^\| {row} \| ([\d.]+) \|$", PERFORMANCE, re.MULTILINE)

    assert model == float(tidemill_ms)


LOADS = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \| ([\d,.]+) \| (.+) \|$", SCALE, re.MULTILINE)


@pytest.mark.parametrize(("rate", "dollars", "workers", "binding"), LOADS, ids=[load[0] for load in LOADS])
def test_a_row_of_the_page_of_scale_has_the_load_of_its_rate(
    rate: str, dollars: str, workers: str, binding: str
) -> None:
    load = json.loads(printed(f"--rate {rate.replace(',', '')} --json"))["load"]

    names = ", ".join(bound["name"] for bound in load["bounds"] if bound["binds"])
    assert f"{load['dollars_per_month']:,.0f}" == dollars
    assert f"{load['workers']:,.1f}" == workers
    assert (names or "nothing") == binding


def test_the_query_of_dollars_has_the_prices_of_the_model() -> None:
    query = r"stats count\(\*\) \* ([\d.]+) \+ sum\(AttemptDuration\) / 1000 \* ([\d.]+) as dollars"
    ((run, second),) = re.findall(query, COST)
    profile = Profile()
    gigabyte_seconds = profile.memory_mb / 1024 / profile.batch

    assert run == f"{json.loads(printed('--json'))['per_million_jobs']['total'] / 1e6:.8f}"
    assert second == f"{list_prices.LAMBDA_DURATION.of(gigabyte_seconds):.8f}"


def test_the_budget_of_the_page_buys_its_jobs() -> None:
    sentence = r"^`tidemill cost (.+? --budget \d+)` prints .+?: ([\d,]+) such jobs"
    ((options, jobs),) = re.findall(sentence, COST, re.MULTILINE)

    assert f"{json.loads(printed(f'{options} --json'))['daily_quota']['count']:,}" == jobs


def test_the_page_shows_where_payloads_cost_least() -> None:
    """Within a few percent: versions of zlib differ by some bytes."""
    block = r"^```\npython -m tests\.benchmarks\.payload_places\n```\n\n\|.+\n\|.+\n((?:\|.+\n)+)"
    (table,) = re.findall(block, COST, re.MULTILINE)
    shown = [[cell.strip().replace(",", "") for cell in line.strip("|\n").split("|")] for line in table.splitlines()]

    for row, (*figures, cheapest) in zip(payload_places.rows(), shown, strict=True):
        counted = [row.payload_bytes, row.compressed_bytes, row.document, row.item, row.compressed, row.file]
        assert [float(each) for each in figures] == pytest.approx(counted, rel=0.05)
        assert cheapest == row.cheapest
