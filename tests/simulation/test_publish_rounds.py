"""An urgent job does not wait for the messages of the bulk jobs that were written before it."""

from tests.simulation.publish_rounds import rounds
from tidemill.aws.clients import POOL_SIZE
from tidemill.cdk.config import LARGEST_PARALLELIZATION

BULK_JOBS = 300


def test_a_critical_job_waits_for_few_calls_behind_a_flood_of_bulk_jobs() -> None:
    in_sequence = rounds(factor=1, calls_at_once=1, bulk_jobs=BULK_JOBS)
    deployed = rounds(factor=LARGEST_PARALLELIZATION, calls_at_once=POOL_SIZE, bulk_jobs=BULK_JOBS)

    assert (in_sequence, deployed) == (BULK_JOBS // 10 + 1, 1)


def test_the_calls_of_one_batch_take_one_round() -> None:
    assert rounds(factor=1, calls_at_once=POOL_SIZE, bulk_jobs=BULK_JOBS) == BULK_JOBS // 100 + 1
