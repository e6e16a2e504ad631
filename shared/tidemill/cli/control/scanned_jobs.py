"""The jobs that match, read by a scan of the table at a limited rate."""

from collections.abc import Callable, Iterator

from tidemill.application.job_filter import JobFilter
from tidemill.application.ports import UnreadableItem
from tidemill.cli.installation import Installation
from tidemill.domain.job import Job
from tidemill.system import clock


def scanned_jobs(
    installation: Installation, wanted: JobFilter, read_units: int, unreadable: Callable[[UnreadableItem], None]
) -> Iterator[Job]:
    """`read_units` are those per second. Holds one page at a time. Jobs that have expired are left out."""
    steps = installation.search(read_units).steps(wanted, now=clock.now(), after=None)
    for step in steps:
        for item in step.unreadable:
            unreadable(item)
        yield from step.jobs
