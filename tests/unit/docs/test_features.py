"""docs/reference/features.md names a test for each feature, and each of these tests exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FEATURES = (ROOT / "docs" / "reference" / "features.md").read_text()
WITNESSES = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", FEATURES)


@pytest.mark.parametrize(("file", "name"), WITNESSES, ids=[name for _, name in WITNESSES])
def test_the_witness_of_a_feature_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_feature_has_a_witness() -> None:
    (table,) = re.findall(r"## Features\n\n(.+?)\n\n", FEATURES, re.DOTALL)
    _, _, *rows = table.splitlines()
    assert len(rows) == len(WITNESSES)
    assert len(set(WITNESSES)) == len(WITNESSES)


def test_each_note_has_a_reference_and_each_reference_has_a_note() -> None:
    (table,) = re.findall(r"## Comparison\n(.+?)\n\n1\. ", FEATURES, re.DOTALL)
    (notes,) = re.findall(r"\n\n(1\. .+?)\n\n## ", FEATURES, re.DOTALL)
    referred = set(re.findall(r"\((\d+)\)", table))
    assert referred == set(re.findall(r"^(\d+)\. ", notes, re.MULTILINE))
