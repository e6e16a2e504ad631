"""The same work, claimed and settled together."""

from tests.benchmarks.jobs.work import Work, do
from tidemill import Run, job_type


@job_type("bench.grouped", payload=Work, commit="grouped")
def grouped(work: Work, _run: Run) -> dict[str, bool]:
    return do(work)
