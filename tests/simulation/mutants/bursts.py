"""Debounce: lost submissions and payloads, two jobs of one key, wrong times, and late or missing messages."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant


def _dropped(name: str, clause: str) -> Mutant:
    """A clause of `join` that holds always."""
    attribute = clause.split(maxsplit=1)[0]
    always = f"({clause} OR attribute_exists({attribute}) OR attribute_not_exists({attribute}))"
    return Mutant(name, modules.BURST_WRITES, f'"{clause}",', f'"{always}",')


DEBOUNCED: Final = (
    _dropped("a submission joins a job that has begun", "#state = :read_state"),
    _dropped("a submission joins a job that was held back since", "#generation = :read_generation"),
    _dropped("a submission moves a job back", "#due = :read_due"),
    _dropped("a repeated submission counts twice", "#burst.#last <> :burst_last"),
    Mutant(
        "a submission loses the payload of another one",
        modules.BURST_WRITES,
        'else f"attribute_not_exists(#{PAYLOAD_LOCATION_ATTRIBUTE})",',
        'else f"(attribute_exists(#state) OR attribute_not_exists(#{PAYLOAD_LOCATION_ATTRIBUTE}))",',
    ),
    Mutant(
        "a submission loses the stored payload of another one",
        modules.BURST_WRITES,
        'f"#{PAYLOAD_LOCATION_ATTRIBUTE} = :read_location"',
        'f"(#{PAYLOAD_LOCATION_ATTRIBUTE} = :read_location OR #{PAYLOAD_LOCATION_ATTRIBUTE} <> :read_location)"',
    ),
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
        "a pause takes a moved job back to its earlier time",
        modules.OPERATORS,
        '            "#due = :due",\n',
        '            "(#due = :due OR #due <> :due)",\n',
    ),
    Mutant(
        "a moved job is not parked",
        modules.PUBLISH,
        "if (moved := refused.current) and _is_moved(job, moved):",
        "if (moved := refused.current) and not _is_moved(job, moved) and _is_moved(job, moved):",
    ),
    Mutant(
        "a move writes an old payload",
        modules.BURST_WRITES,
        "    if replaces:\n        for name, held in",
        "    if True:\n        for name, held in",
    ),
    Mutant(
        "an earlier entry of the index stays",
        modules.BURST_WRITES,
        "            removes += ATTENTION\n",
        "            pass\n",
    ),
    Mutant(
        "a change of state by a submission is not in the history",
        modules.BURST_WRITES,
        "history([*kept, entry])",
        "history([*kept])",
    ),
    Mutant("a job is moved beyond the end of its burst", modules.DEBOUNCE, "min(due, burst.until)", "due"),
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
        "a job that was held back is moved",
        modules.DEBOUNCE,
        "or job.claimed_at or job.state not in _TO_MOVE",
        "or job.state not in _TO_MOVE",
    ),
    Mutant("a parked job is moved", modules.DEBOUNCE, "frozenset({State.SCHEDULED, State.QUEUED})", "frozenset(State)"),
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
        "a refused submission is accepted",
        modules.DEBOUNCING,
        "last.id), self._payloads)\n            return None\n",
        "last.id), self._payloads)\n            return Accepted(job=last, replayed=True)\n",
    ),
    Mutant(
        "the payload of a submission whose answer was lost is deleted",
        modules.DEBOUNCING,
        "delete_unnamed(joined, self._store.get(last.tenant, last.id), self._payloads)",
        "delete_unnamed(joined, None, self._payloads)",
    ),
    Mutant(
        "a payload stays after another burst has begun first",
        modules.DEBOUNCING,
        "        except WriteRefusedError:\n            delete_unnamed(stored, None, self._payloads)\n",
        "        except WriteRefusedError:\n",
    ),
    Mutant(
        "no submission moves its job",
        modules.DEBOUNCING,
        "joined = moved(last, job.due or now, now=now)",
        "joined = last",
    ),
    Mutant(
        "publish sees no replaced payload of a scheduled job",
        "tidemill.cdk.stream_settings",
        '{"S": list(names.REPLACEABLE_STATES)}',
        '{"S": ["waiting"]}',
    ),
)
