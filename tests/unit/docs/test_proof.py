"""docs/internals/proof.md names checks of the simulator by their titles, and each of these checks exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROOF = (ROOT / "docs" / "internals" / "proof.md").read_text()
(PROMISES,) = re.findall(r"\| promise \| checks \|\n(.+?)\n\n", PROOF, re.DOTALL)


def _strings(folder: Path) -> Iterator[str]:
    for source in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


@pytest.fixture(scope="module")
def titles() -> frozenset[str]:
    return frozenset(_strings(ROOT / "tests" / "simulation"))


@pytest.mark.parametrize("title", re.findall(r"`([^`]+)`", PROMISES))
def test_each_check_of_a_promise_exists(title: str, titles: frozenset[str]) -> None:
    assert title in titles


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:tests|shared)/[\w/]+(?:\.py)?)`", PROOF))))
def test_each_file_of_the_page_exists(path: str) -> None:
    assert (ROOT / path).exists()
