"""The table of memory and CPU time: which work it has, and where it is written."""

from tests.benchmarks.limits import PAGE, Case, Measured, cases, row, written

_ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if " MB | " in line]


def case(name: str) -> Case:
    return Case(work="a look", size_bytes=2_000, name=name, act=lambda: None)


def test_the_page_has_a_row_for_each_work() -> None:
    found = {(each.work, each.size_bytes): None for each in cases("the id of a flow")}
    largest = dict(sorted(found))
    assert [tuple(line.strip("| ").split(" | ")[:2]) for line in _ROWS] == [
        (work, f"{largest[work]:,}") for work in dict.fromkeys(work for work, _ in found)
    ]


def test_a_row_has_the_worst_cases_of_a_work() -> None:
    found = [Measured(case("lists"), 12.4, 0.1), Measured(case("texts"), 3.0, 0.25)]
    assert row(found) == "| a look | 2,000 | 12 MB | lists | 0.25 s | texts |"


def test_the_rows_replace_those_of_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    changed = written(page, ["| a look |"])
    assert [changed.count("| a look |"), changed.count(" MB | ")] == [1, 0]
    assert written(changed, _ROWS) == page
