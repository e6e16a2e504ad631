"""Each clause of each condition, dropped, and what a write must set or remove besides, forgotten."""

import re
from typing import Final

from tests.simulation.mutants.applied import Mutant

_WRITES: Final = "shared.adapters.writes"
_OPERATORS: Final = "shared.adapters.operator_writes"
_GROUP_ITEMS: Final = "shared.adapters.group_items"
_RUN: Final = "shared.application.run"
_SETTLE: Final = "shared.application.settle"
_NUDGE: Final = "shared.application.nudge"


def _always(name: str, module: str, race: str, clause: str) -> Mutant:
    """`clause`, found by the race that stands above it, holds always: DynamoDB refuses names that nothing uses."""
    above = f"# {race}\n            "
    attribute = re.findall(r"#\w+", clause)[0]
    always = f"({clause} OR attribute_exists({attribute}) OR attribute_not_exists({attribute}))"
    return Mutant(name, module, f'{above}"{clause}"', f'{above}"{always}"')


CLAUSES: Final = (
    # Conditions.
    _always(
        "wake what was put off since",
        _OPERATORS,
        "It was woken, ran and was put off again since it was read.",
        "#generation = :generation",
    ),
    _always(
        "nudge what has moved on",
        _OPERATORS,
        "It was claimed, or its run ended, since it was read.",
        "#state = :state",
    ),
    _always(
        "nudge twice at once",
        _OPERATORS,
        "Two who find it at once make one dispatch.",
        "(attribute_not_exists(#nudged_at) OR #nudged_at <= :overdue)",
    ),
    _always(
        "redrive another death",
        _OPERATORS,
        "Two operators at once: the second finds the generation raised.",
        "#generation = :generation",
    ),
    _always(
        "redrive what is past its time",
        _OPERATORS,
        "What is past its time is as good as absent, though DynamoDB deletes it days late.",
        "(attribute_not_exists(#expires_at) OR #expires_at > :now)",
    ),
    Mutant(
        "purge whatever is there",
        _OPERATORS,
        '"#generation = :generation AND #finished_at = :finished_at"',
        '"#generation = :generation AND (#finished_at = :finished_at OR #finished_at <> :finished_at '
        'OR attribute_not_exists(#finished_at))"',
    ),
    Mutant(
        "a group is made twice",
        _GROUP_ITEMS,
        '"attribute_not_exists(#version)" if',
        '"(attribute_not_exists(#version) OR attribute_exists(#version))" if',
    ),
    # What a write sets or removes.
    Mutant("nobody knows when it was claimed", _WRITES, '            "claimed_at": milliseconds(now),\n', ""),
    Mutant("nudges are counted for ever", _WRITES, 'removes=["nudges", *ATTENTION],', "removes=[*ATTENTION],"),
    Mutant("holds are not counted", _WRITES, 'sets["holds"] = number(settlement.holds)', "pass"),
    Mutant("holds are counted for ever", _WRITES, 'removes = [] if settlement.holds else ["holds"]', "removes = []"),
    Mutant("checkpoints are not kept", _WRITES, '        sets["checkpoint"] = text(saved.state)\n', "        pass\n"),
    Mutant("progress is not kept", _WRITES, 'sets["progress_done"] = number(saved.done)', "pass"),
    Mutant(
        "a continuation begins anew",
        _WRITES,
        'for name in ("result", "death", "checkpoint"):',
        'for name in ("result", "death"):',
    ),
    Mutant("releases are not counted", _WRITES, ', "releases": number(job.releases + 1)}', "}"),
    Mutant(
        "a claim taken back stays taken",
        _WRITES,
        '"last_owner": text(token), "due": milliseconds(now)},',
        '"last_owner": text(token)},',
    ),
    Mutant(
        "a dead head may be forgotten",
        _WRITES,
        "if state is State.DEAD and job.blocks and job.group:",
        "if state is State.WAITING:",
    ),
    Mutant(
        "all are kept for as long as any",
        _WRITES,
        "kept_until = now + (job.retention or retention)",
        "kept_until = now + retention",
    ),
    Mutant("jobs are not listed", _WRITES, "    if listed:\n", "    if not listed:\n"),
    Mutant(
        "the cancelled keep their death",
        _OPERATORS,
        'removes=["due", "death", *ATTENTION],',
        'removes=["due", *ATTENTION],',
    ),
    Mutant("nudges are not told", _OPERATORS, ', "nudges": number(job.nudges + 1)}', "}"),
    Mutant("a lost run stays lost", _OPERATORS, 'sets["state"] = text(State.RETRYING)', "pass"),
    Mutant("redrives are not told", _OPERATORS, "(*job.redrives, entry)[-ERRORS_KEPT:]", "job.redrives"),
    Mutant("redrive keeps the hops", _OPERATORS, '"nudged_at", "hops", "deadline"', '"nudged_at", "deadline"'),
    Mutant("redrive keeps a request to end", _OPERATORS, '*("cancel_requested_at", "run_at", ', '*("run_at", '),
    # Nudges.
    Mutant(
        "nobody is given up", _NUDGE, "last = job.state is not State.RUNNING and _given_up(job, now)", "last = False"
    ),
    # Runs.
    Mutant(
        "a claim without an answer stays",
        _RUN,
        "self._tools.store.unclaim(self.reference, token=token, now=now)",
        "pass",
    ),
    Mutant("the suspect run in company", _RUN, "if job.suspect and job.holds", "if False and job.holds"),
    Mutant("types have no time of their own", _RUN, "        if job_type.timeout:\n", "        if False:\n"),
    Mutant("an outage is the job's failure", _RUN, "if job.holds >= MOST_HOLDS_OF_AN_OUTAGE:", "if True:"),
    Mutant(
        "a settle is put together twice",
        _SETTLE,
        "                return _report(job, outcome, written, now)\n",
        "                pass\n",
    ),
    Mutant(
        "what was asked to end is fenced",
        _SETTLE,
        "refused.current.owner == job.owner and refused.current.cancel_requested_at:",
        "refused.current.owner != job.owner:",
    ),
    Mutant("conflicts count at once", _SETTLE, "if job.releases >= MOST_RELEASES:", "if True:"),
    Mutant(
        "a transaction that cannot be is an outage",
        _SETTLE,
        "except (EffectRefusedError, TransactionTooLargeError) as refused:",
        "except TransactionTooLargeError as refused:",
    ),
)
