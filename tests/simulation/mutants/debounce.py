"""Debounce: two jobs of one key, wrong times, and late or needless messages.

`tests/contract/test_debounce.py` has a case for each clause of `join`. Here, one mostly hides the lack of another.
"""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

DEBOUNCED: Final = (
    Mutant(
        "two bursts begin at once",
        modules.BURST_WRITES,
        "lead_to",
        "f'attribute_not_exists(#{JOB_KEY})'",
        "f'(attribute_not_exists(#{JOB_KEY}) OR attribute_exists(#{JOB_KEY}))'",
    ),
    Mutant(
        "two bursts follow one",
        modules.BURST_WRITES,
        "lead_to",
        "f'#{JOB_ATTRIBUTE} = :after'",
        "f'(#{JOB_ATTRIBUTE} = :after OR #{JOB_ATTRIBUTE} <> :after)'",
    ),
    Mutant(
        "a job is moved beyond the end of its burst",
        modules.DEBOUNCE,
        "moved",
        "min(due or now, burst.until)",
        "due or now",
    ),
    Mutant(
        "a moved job sends no new message",
        modules.DEBOUNCE,
        "moved",
        "both_queued and now < burst.sent_for <= due",
        "both_queued",
    ),
    Mutant(
        "a message that comes too late serves",
        modules.DEBOUNCE,
        "moved",
        "now < burst.sent_for <= due",
        "now < burst.sent_for",
    ),
    Mutant(
        "each submission sends a message",
        modules.DEBOUNCE,
        "moved",
        "both_queued and now < burst.sent_for <= due",
        "False",
    ),
    Mutant(
        "a job that failed once takes submissions",
        modules.DEBOUNCE,
        "takes_submissions",
        "not (job.attempt or job.hops or job.lease.releases or job.redrives)",
        "True",
    ),
    Mutant("moves are not counted", modules.DEBOUNCE, "moved", "burst.moves + 1", "burst.moves"),
    Mutant("the first move is forgotten", modules.DEBOUNCE, "moved", "burst.first_moved_at or now", "now"),
    Mutant(
        "no submission moves its job",
        modules.DEBOUNCING,
        "Debouncer._joined",
        "useful_longer(moved(last, job.run_at, now=now), job, now=now)",
        "last",
    ),
    Mutant(
        "a job keeps the age of its first submission",
        modules.DEBOUNCE,
        "useful_longer",
        "replace(job, lifetime=replace(job.lifetime, useful_until=None))",
        "job",
    ),
)
