"""The job type of the benchmark. `tidemill_app` copies it and `tests.benchmarks.peers.work`, as `bench_work`."""

from bench_work import work  # type: ignore[import-not-found]
from pydantic import BaseModel

from tidemill import Run, job_type


class Work(BaseModel):
    number: int
    milliseconds: float
    journal: str


@job_type("bench.work", payload=Work)
def bench(payload: Work, _run: Run) -> dict[str, bool]:
    work(payload.number, payload.milliseconds, payload.journal)
    return {"done": True}
