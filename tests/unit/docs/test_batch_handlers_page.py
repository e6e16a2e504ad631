"""The examples of `docs/guides/batch-handlers.md` work."""

from typing import Any

from tests.support.documented_job_types import job_types_of, run_example

PAGE = "batch-handlers.md"


def test_the_test_of_the_guide_passes() -> None:
    with job_types_of(PAGE) as known:
        run_example(PAGE, "from functions.jobs")["test_a_broken_meter_stops_no_other"]()

        reading: Any = known.get("meter.reading")
        assert reading.batch == 100
