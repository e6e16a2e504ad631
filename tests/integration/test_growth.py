"""One job, a page of a listing, a wake and a call of reconcile cost the same with 1,000 and with 20,000 documents.

Half of the documents are dead jobs. `python -m tests.benchmarks.growth` counts the same beside a million documents.
"""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.benchmarks.growth import SIZES, row
from tests.support.deployed_functions import Mill
from tests.support.growth import growing, used_beside

FEW: Final = 1_000
MANY: Final = 20_000
SCALE: Final = (Path(__file__).parents[2] / "docs/operations/scale.md").read_text()


@pytest.mark.slow
def test_nothing_costs_more_with_twenty_times_as_many_documents(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    with growing(mill, monkeypatch):
        few, many = (used_beside(mill, documents, dead=documents // 2) for documents in (FEW, MANY))

    assert [used.without_bytes for used in few.values()] == [used.without_bytes for used in many.values()]
    # Times and ids have about the same length.
    for name, used in few.items():
        assert many[name].bytes_read == pytest.approx(used.bytes_read, rel=0.01, abs=100)
    assert all(used.calls for used in few.values())


def test_the_page_has_a_row_for_each_size_and_work_and_all_sizes_agree() -> None:
    """CI does not count them again, but for the smallest. The test above compares smaller tables."""
    for name, used in _shown().items():
        assert len({each for each, _ in used}) == 1, name
        smallest, *others = (size for _, size in used)
        assert others == pytest.approx([smallest] * len(others), rel=0.02, abs=200), name


@pytest.mark.slow
def test_the_page_shows_the_counts_of_the_smallest_size(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    documents, dead = SIZES[0]
    with growing(mill, monkeypatch):
        used = used_beside(mill, documents, dead=dead)

    for name, each in used.items():
        (shown, _), *_ = _shown()[name]
        assert f"| {shown} |" in row(name, documents, dead, each)


def _shown() -> dict[str, list[tuple[str, int]]]:
    """By the work: calls and units, and the bytes, of each size."""
    found: dict[str, list[tuple[str, int]]] = {}
    for documents, dead in SIZES:
        rows = re.findall(rf"^\| (.+) \| {documents:,} \| {dead:,} \| (.+) \| ([\d,]+) \|$", SCALE, re.MULTILINE)
        assert len(rows) == 5
        for name, counts, size in rows:
            found.setdefault(name, []).append((counts, int(size.replace(",", ""))))
    return found
