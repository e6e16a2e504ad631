"""One job, a page of a listing, a wake and a call of reconcile cost the same with 1,000 and with 100,000 documents.

Half of the documents are dead jobs. Counted: calls of DynamoDB, table capacity, and the bytes of its answers.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

import pytest

from tests.integration.test_reconcile import SCHEDULED, metrics
from tests.support.api_gateway import request, sign_cursors
from tests.support.capacity_meter import CapacityMeter, metered
from tests.support.deployed_functions import Context, Mill
from tests.support.grown_table import grown
from tidemill.entrypoints import reconcile, wake
from tidemill.names import WAKE_PART, WAKE_PARTS

#: A fixture of another file.
__all__ = ["metrics"]

FEW: Final = 1_000
MANY: Final = 100_000
#: Of a page of a listing.
LIMIT: Final = 20


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
    reconcile.handle(SCHEDULED, Context(timedelta(minutes=15)))


def _page(_mill: Mill, **wanted: str) -> None:
    answer = request("GET", "/jobs", query={**wanted, "limit": str(LIMIT)})
    assert answer.status == 200
    assert len(answer.body["jobs"]) == LIMIT
    assert answer.body["cursor"], "there are more"


def used(meter: CapacityMeter) -> Mapping[str, Any]:
    return {
        "calls": dict(meter.calls),
        "read units": meter.read_units,
        "write units": meter.write_units + meter.index_write_units,
    }


WORK: Final = (one_job, page_of_all, page_of_dead_jobs, one_wake, call_of_reconcile)


@pytest.mark.slow
@pytest.mark.usefixtures(metrics.__name__)
def test_nothing_costs_more_with_a_hundred_times_as_many_documents(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_cursors(monkeypatch)
    mill.read_configuration()
    call_of_reconcile(mill)  # its pass over the table ends, and none is due until tomorrow
    counted: dict[int, dict[str, Any]] = {}
    bytes_read: dict[int, dict[str, int]] = {}
    for documents in (FEW, MANY):
        counted[documents], bytes_read[documents] = {}, {}
        with grown(mill.table, documents, now=mill.now()), metered(mill.table) as meter:
            for work in WORK:
                meter.clear()
                work(mill)
                counted[documents][work.__name__] = used(meter)
                bytes_read[documents][work.__name__] = meter.bytes_read

    assert counted[FEW] == counted[MANY]
    # Times and ids have about the same length.
    assert bytes_read[MANY] == pytest.approx(bytes_read[FEW], rel=0.01, abs=100)
    assert all(used["calls"] for used in counted[FEW].values())
