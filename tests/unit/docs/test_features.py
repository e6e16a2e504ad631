"""docs/reference/features.md is true: each test that it calls as a witness exists."""

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
    (table,) = re.findall(r"## What there is\n\n(.+?)\n\n", FEATURES, re.DOTALL)
    _, _, *rows = table.splitlines()
    assert len(rows) == len(WITNESSES)
    assert len(set(WITNESSES)) == len(WITNESSES)


def test_every_note_is_referred_to_and_every_reference_has_its_note() -> None:
    (table,) = re.findall(r"## Against others\n(.+?)\n\n1\. ", FEATURES, re.DOTALL)
    (notes,) = re.findall(r"\n\n(1\. .+?)\n\n## ", FEATURES, re.DOTALL)
    referred = set(re.findall(r"\((\d+)\)", table))
    assert referred == set(re.findall(r"^(\d+)\. ", notes, re.MULTILINE))
