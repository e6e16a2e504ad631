"""Every change of a stack's template shows here, with one line for each resource."""

import json
import re
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.infrastructure.conftest import Synthesised, without_digests


def _lines(template: dict[str, Any]) -> list[str]:
    """Asset keys and the digests of functions are masked, because they change with every change of code."""
    masked = re.sub(r"\b[0-9a-f]{64}\b", "<asset>", without_digests(json.dumps(template)))
    return [
        f"{id_} {resource['Type']} {json.dumps(resource['Properties'], sort_keys=True)}"
        for id_, resource in sorted(json.loads(masked)["Resources"].items())
    ]


@pytest.mark.parametrize("stack", ["pipeline", "shortener"])
def test_the_stack_is_as_it_was(dev: Synthesised, stack: str, snapshot: SnapshotAssertion) -> None:
    assert _lines(getattr(dev, stack)) == snapshot
