"""Debounce: two jobs of one key, wrong times, and late or needless messages.

`tests/contract/test_bursts.py` has a case for each clause of `join`. Here, one mostly hides the lack of another.
"""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

DEBOUNCED: Final = (
    Mutant(
        "two bursts begin at once",
        modules.BURST_WRITES,
        'f"attribute_not_exists(#{JOB_KEY})" if after is None',
        'f"(attribute_not_exists(#{JOB_KEY}) OR attribute_exists(#{JOB_KEY}))" if after is None',
    ),
    Mutant(
        "two bursts follow one",
        modules.BURST_WRITES,
        'else f"#{JOB_ATTRIBUTE} = :after"',
        'else f"(#{JOB_ATTRIBUTE} = :after OR #{JOB_ATTRIBUTE} <> :after)"',
    ),
    Mutant(
        "a job is moved beyond the end of its burst", modules.DEBOUNCE, "min(due or now, burst.until)", "due or now"
    ),
    Mutant(
        "a moved job sends no new message",
        modules.DEBOUNCE,
        "message_serves = both_queued and now < burst.sent_for <= due",
        "message_serves = both_queued",
    ),
    Mutant(
        "a message that comes too late serves",
        modules.DEBOUNCE,
        "now < burst.sent_for <= due",
        "now < burst.sent_for",
    ),
    Mutant(
        "each submission sends a message",
        modules.DEBOUNCE,
        "message_serves = both_queued and now < burst.sent_for <= due",
        "message_serves = False",
    ),
    Mutant(
        "a job that failed once takes submissions",
        modules.DEBOUNCE,
        "unused = not (job.attempt or job.hops or job.releases or job.redrives)",
        "unused = True",
    ),
    Mutant("moves are not counted", modules.DEBOUNCE, "moves=burst.moves + 1,", "moves=burst.moves,"),
    Mutant(
        "the first move is forgotten",
        modules.DEBOUNCE,
        "first_moved_at=burst.first_moved_at or now,",
        "first_moved_at=now,",
    ),
    Mutant(
        "no submission moves its job",
        modules.DEBOUNCING,
        "useful_longer(moved(last, job.run_at, now=now), job, now=now)",
        "last",
    ),
    Mutant(
        "a job keeps the age of its first submission",
        modules.DEBOUNCE,
        "        return replace(job, useful_until=None)",
        "        return job",
    ),
)
