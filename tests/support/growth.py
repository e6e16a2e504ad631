"""What a job, a page of a listing, a wake and a call of reconcile cost beside many documents."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import pytest

from tests.support.api_gateway import request, sign_cursors
from tests.support.capacity_meter import CapacityMeter, metered
from tests.support.deployed_functions import Context, Mill
from tests.support.grown_table import grown
from tidemill.aws import clients
from tidemill.entrypoints import reconcile, wake
from tidemill.names import CONTINUE, WAKE_PART, WAKE_PARTS, Env

#: The limit of a page of a listing.
LIMIT: Final = 20


@dataclass(frozen=True, slots=True)
class Used:
    calls: Mapping[str, int]
    read_units: float
    write_units: int
    #: The bytes of the answers.
    bytes_read: int

    @property
    def without_bytes(self) -> tuple[Mapping[str, int], float, int]:
        """Times and ids make some of the bytes differ."""
        return self.calls, self.read_units, self.write_units


def one_job(mill: Mill) -> None:
    mill.accepted(job_type="test.noop")
    mill.run()


def page_of_all(mill: Mill) -> None:
    _page(mill)


def page_of_dead_jobs(mill: Mill) -> None:
    _page(mill, state="dead")


def one_wake(_mill: Mill) -> None:
    wake.handle({WAKE_PART: "0", WAKE_PARTS: "1"}, Context(timedelta(minutes=1)))


def call_of_reconcile(_mill: Mill) -> None:
    reconcile.handle({CONTINUE: "true"}, Context(timedelta(minutes=15)))


#: By the names of the page.
WORK: Final = {
    "a job from submission to success": one_job,
    f"a page of {LIMIT} jobs": page_of_all,
    f"a page of {LIMIT} dead jobs, of which half are others": page_of_dead_jobs,
    "a wake of all parts, without scheduled jobs": one_wake,
    "a call of reconcile between two passes": call_of_reconcile,
}


@contextmanager
def growing(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ready to be measured by `used_beside`, any number of times."""
    sign_cursors(monkeypatch)
    monkeypatch.setenv(Env.RECONCILE_LIMIT_SECONDS, str(timedelta(hours=3).total_seconds()))
    monkeypatch.setenv(Env.RECONCILE_READ_UNITS, "1000000")
    monkeypatch.setattr(clients, "cloudwatch", _NoMetrics)
    mill.read_configuration()
    call_of_reconcile(mill)  # its pass over the table ends, and none is due until tomorrow
    yield


def used_beside(mill: Mill, documents: int, *, dead: int) -> dict[str, Used]:
    with grown(mill.table, documents, dead=dead, now=mill.now()), metered(mill.table) as meter:
        return {name: _used(mill, meter, name) for name in WORK}


def _used(mill: Mill, meter: CapacityMeter, name: str) -> Used:
    meter.clear()
    WORK[name](mill)
    return Used(dict(meter.calls), meter.read_units, meter.write_units + meter.index_write_units, meter.bytes_read)


def _page(_mill: Mill, **wanted: str) -> None:
    answer = request("GET", "/jobs", query={**wanted, "limit": str(LIMIT)})
    assert answer.status == 200, answer
    assert len(answer.body["jobs"]) == LIMIT
    assert answer.body["cursor"], "there are more"


class _NoMetrics:
    """A CloudWatch without any."""

    def get_metric_statistics(self, *, EndTime: datetime, **_rest: Any) -> Any:  # noqa: N803 - as boto3 has it
        return {"Datapoints": []}
