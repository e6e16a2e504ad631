"""A tripwire: whatever changes in a stack shows here, one line a resource."""

import json
import re
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.infrastructure.conftest import Synthesised


def _lines(template: dict[str, Any]) -> list[str]:
    """Asset keys are masked: they change with every line of code."""
    masked = re.sub(r"\b[0-9a-f]{64}\b", "<asset>", json.dumps(template))
    return [
        f"{id_} {resource['Type']} {json.dumps(resource['Properties'], sort_keys=True)}"
        for id_, resource in sorted(json.loads(masked)["Resources"].items())
    ]


@pytest.mark.parametrize("stack", ["pipeline", "shortener"])
def test_the_stack_is_as_it_was(dev: Synthesised, stack: str, snapshot: SnapshotAssertion) -> None:
    assert _lines(getattr(dev, stack)) == snapshot
