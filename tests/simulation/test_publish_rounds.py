"""An urgent job does not wait for the messages of the bulk jobs that were written before it."""

from tests.simulation.publish_rounds import BULK_JOBS, CASES, rounds
from tidemill.aws.clients import POOL_SIZE
from tools.paths import ROOT


def test_a_critical_job_waits_for_few_calls_behind_a_flood_of_bulk_jobs() -> None:
    in_sequence, deployed = (rounds(factor=factor, calls_at_once=calls) for factor, calls in (CASES[0], CASES[-1]))

    assert in_sequence == BULK_JOBS // 10 + 1
    # A part of the shard has about a hundred of the jobs, as their keys say, and a batch takes a hundred.
    assert deployed in {1, 2}
    page = " ".join((ROOT / "docs/start/first-job.md").read_text().split())
    said = f"after {BULK_JOBS:,} bulk jobs of its shard waits for one or two calls to SQS, not for {in_sequence}."
    assert said in page


def test_the_calls_of_one_batch_take_one_round() -> None:
    assert rounds(factor=1, calls_at_once=POOL_SIZE, bulk_jobs=300) == 300 // 100 + 1
