"""The examples of `docs/guides/batch-handlers.md` work."""

import re
import sys
from types import ModuleType
from typing import Any

import pytest

from tests.support.documented_job_types import GUIDES, job_types_of

PAGE = "batch-handlers.md"


def test_the_test_of_the_guide_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    (example,) = re.findall(r"```python\n(from functions.+?)```", (GUIDES / PAGE).read_text(), re.DOTALL)
    with job_types_of(PAGE) as known:
        file: Any = ModuleType("functions.jobs.meter")
        file.reading = known.get("meter.reading")
        monkeypatch.setitem(sys.modules, "functions.jobs.meter", file)
        names: dict[str, Any] = {}
        exec(example, names)

        names["test_a_broken_meter_stops_no_other"]()
        assert file.reading.batch == 100
