"""The page of metrics names each metric and no other, and says which count by type."""

import re
from pathlib import Path

import pytest

from tidemill.metrics import METRICS_BY_TYPE, Metric

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| (`[^|]+`) \| [^|]+ \| (yes|) ?\|", re.MULTILINE)


@pytest.fixture
def rows() -> dict[str, bool]:
    """Whether each named metric counts by type."""
    page = (ROOT / "docs/reference/metrics.md").read_text().partition("## Log lines")[0]
    return {name: by_type == "yes" for names, by_type in ROW.findall(page) for name in re.findall(r"`(\w+)`", names)}


def test_the_page_names_each_metric_and_no_other(rows: dict[str, bool]) -> None:
    assert sorted(rows) == sorted(Metric)


def test_the_page_says_which_metrics_count_by_type(rows: dict[str, bool]) -> None:
    assert {name for name, by_type in rows.items() if by_type} == METRICS_BY_TYPE
