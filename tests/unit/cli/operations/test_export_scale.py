"""The memory of an export of many jobs. The table is generated, so that it takes no memory itself."""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.builders import NOW, a_job
from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.application.passes.job_search import JobPage, JobSearch
from tidemill.application.passes.pace import Pace
from tidemill.cli.control.scanned_jobs import scanned_jobs
from tidemill.cli.installation import Installation
from tidemill.cli.operations.export import lines
from tidemill.domain.job import Job

_PAGE = 100


@dataclass
class ManyJobs:
    """A scan of so many pages."""

    pages: int

    def page(self, wanted: JobFilter, *, after: str | None) -> JobPage:
        number = int(after or 0) + 1
        jobs = [a_job(id=f"{number}-{index}", payload='{"a":"' + "x" * 1000 + '"}') for index in range(_PAGE)]
        cursor = str(number) if number < self.pages else None
        return JobPage(found=jobs, cursor=cursor, items=_PAGE, read_units=1)

    def cursor_after(self, job: Job) -> str:
        raise NotImplementedError


def _installation(pages: int) -> Installation:
    pace = Pace(1e9, clock=lambda: NOW, pause=lambda _: None)
    search = JobSearch(ManyJobs(pages), pace)
    payloads = SimpleNamespace(load=lambda job: job.payload.text)
    return cast("Installation", SimpleNamespace(search=lambda _: search, payloads=payloads))


def _peak_bytes(export: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        export()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("payloads", [False, True])
def test_thirty_times_as_many_jobs_take_no_more_memory(monkeypatch: pytest.MonkeyPatch, payloads: bool) -> None:
    monkeypatch.setattr("tidemill.system.clock.now", lambda: NOW + timedelta(seconds=1))

    def export(pages: int) -> int:
        installation = _installation(pages)
        jobs = scanned_jobs(installation, ANY_JOB, 1, lambda _: None)
        return sum(1 for _ in lines(installation, jobs, payloads=payloads, rate=None))

    assert export(1) == _PAGE
    few, many = _peak_bytes(lambda: export(1)), _peak_bytes(lambda: export(30))
    assert many < 3 * few
