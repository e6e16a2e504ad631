"""Each clause of each condition, dropped, and what a write must set or remove besides, forgotten."""

import re
from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant


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
        modules.OPERATORS,
        "Since it was read, the job was woken, ran, and was scheduled again.",
        "#generation = :generation",
    ),
    _always(
        "nudge what has moved on",
        modules.OPERATORS,
        "The job was claimed, or its run ended, since it was read.",
        "#state = :state",
    ),
    _always(
        "nudge twice at once",
        modules.OPERATORS,
        "Two concurrent nudges of the job make one dispatch.",
        "(attribute_not_exists(#nudged_at) OR #nudged_at <= :overdue)",
    ),
    _always(
        "redrive another death",
        modules.OPERATORS,
        "Two concurrent operators: the second finds a higher generation.",
        "#generation = :generation",
    ),
    _always(
        "redrive what is past its time",
        modules.OPERATORS,
        "An expired job counts as missing, although DynamoDB deletes it days late.",
        "(attribute_not_exists(#expires_at) OR #expires_at > :now)",
    ),
    _always(
        "act on a later job of the key",
        modules.OPERATORS,
        "Since it was read, the job expired and a new job replaced it, whose generations begin again at 1.",
        "#created_at = :created_at",
    ),
    Mutant(
        "purge deletes a job in any state",
        modules.OPERATORS,
        '"#generation = :generation AND #finished_at = :finished_at"',
        '"#generation = :generation AND (#finished_at = :finished_at OR #finished_at <> :finished_at '
        'OR attribute_not_exists(#finished_at))"',
    ),
    Mutant(
        "a group is made twice",
        modules.GROUP_ITEMS,
        '{"ConditionExpression": "attribute_not_exists(#version)",',
        '{"ConditionExpression": "(attribute_not_exists(#version) OR attribute_exists(#version))",',
    ),
    # What a write sets or removes.
    Mutant("the time of the claim is not kept", modules.WRITES, '        "claimed_at": milliseconds(now),\n', ""),
    Mutant("nudges are counted for ever", modules.WRITES, 'removes=["nudges", *ATTENTION],', "removes=[*ATTENTION],"),
    Mutant(
        "a hold by another cause forgets the outages before it",
        modules.OUTCOMES,
        " if other in BOUNDED - {cause})",
        " if other in BOUNDED - {cause, HoldCause.OUTAGE})",
    ),
    Mutant("holds are not counted", modules.HOLD_WRITES, '"holds": number(settlement.holds),', '"holds": number(1),'),
    Mutant(
        "holds are counted for ever",
        modules.HOLD_WRITES,
        '[*HOLD_ATTRIBUTES, "open_runs", "wait"]',
        '[*HOLD_ATTRIBUTES[1:], "open_runs", "wait"]',
    ),
    Mutant(
        "a crash is reported twice", modules.HOLD_WRITES, '_ATTRIBUTES, "open_runs", "wait"]', '_ATTRIBUTES, "wait"]'
    ),
    Mutant(
        "a hold ends the suspicion",
        modules.HOLD_WRITES,
        '"open_runs": number(open_runs_after(job, settlement)),',
        '"open_runs": number(0),',
    ),
    Mutant("a release is a crash", modules.WRITES, '"open_runs": job.open_runs - 1}', '"open_runs": job.open_runs}'),
    Mutant(
        "an unclaim is a crash",
        modules.WRITES,
        '            "#open_runs = #open_runs - :one",\n',
        '            "#open_runs = #open_runs",\n',
    ),
    Mutant(
        "a snooze forgets a crash",
        modules.OUTCOMES,
        "    if written.holds:\n",
        "    if written.error is None and not written.state.terminal:\n",
    ),
    Mutant(
        "checkpoints are not kept",
        modules.RUN_WRITES,
        '        sets["checkpoint"] = text(saved.state)\n',
        "        pass\n",
    ),
    Mutant("progress is not kept", modules.RUN_WRITES, 'sets["progress_done"] = number(saved.done)', "pass"),
    Mutant(
        "a continuation begins anew",
        modules.WRITES,
        'for name in ("result", "death", "checkpoint"):',
        'for name in ("result", "death"):',
    ),
    Mutant("releases are not counted", modules.WRITES, "job.releases + 1", "job.releases"),
    Mutant(
        "a claim taken back stays taken",
        modules.WRITES,
        '"last_owner": text(token), "due": milliseconds(now)},',
        '"last_owner": text(token)},',
    ),
    Mutant(
        "a dead job that blocks its group may expire",
        modules.WRITES,
        "if state is State.DEAD and job.blocks and job.group:",
        "if state is State.WAITING:",
    ),
    Mutant(
        "all are kept for as long as any",
        modules.WRITES,
        "kept_until = now + (job.retention or retention)",
        "kept_until = now + retention",
    ),
    Mutant("jobs are not listed", modules.INDEXES, "if self.listed else {}", "if not self.listed else {}"),
    Mutant(
        "the cancelled keep their death",
        modules.OPERATORS,
        'removes=["due", "death", "wait", *ATTENTION],',
        'removes=["due", "wait", *ATTENTION],',
    ),
    Mutant("nudges are not counted", modules.OPERATORS, ', "nudges": number(job.nudges + 1)}', "}"),
    Mutant("a lost run stays lost", modules.OPERATORS, 'sets["state"] = text(State.RETRYING)', "pass"),
    Mutant("redrives are not recorded", modules.OPERATORS, "(*job.redrives, entry)[-ERRORS_KEPT:]", "job.redrives"),
    Mutant("redrive keeps the hops", modules.OPERATORS, '"nudged_at", "hops", "deadline"', '"nudged_at", "deadline"'),
    Mutant(
        "redrive keeps a request to end",
        modules.OPERATORS,
        '"cancel_requested_at", "cancel", "run_at",',
        '"cancel", "run_at",',
    ),
    Mutant(
        "places stay",
        modules.GROUPS,
        'cleared.append(self._entry("Delete", group_items.delete_position(head, sequence)))',
        "pass",
    ),
    Mutant("a waiting job loses its requested time", modules.GROUPS, "due = max(job.run_at or now, now)", "due = now"),
    Mutant("a group goes too far", modules.GROUPS, "            if not further:\n", "            if further:\n"),
    Mutant(
        "one error stops the stream",
        modules.PUBLISH,
        "        except Exception as error:  # noqa: BLE001 - one failed step",
        "        except () as error:  # noqa: BLE001 - one failed step",
    ),
    # Nudges.
    Mutant(
        "an undeliverable job is never given up",
        modules.NUDGE,
        "given_up = job.state is not State.RUNNING and _given_up(job, now)",
        "given_up = False",
    ),
    # Runs.
    Mutant(
        "a claim without an answer stays",
        modules.RUN,
        "                self._context.store.unclaim(self.reference, token=token, now=now)\n            raise",
        "                pass\n            raise",
    ),
    Mutant("a suspected job runs beside others", modules.GATES, "if job.suspect and not held_enough", "if False"),
    Mutant("types have no time of their own", modules.GATES, "        if job_type.timeout:\n", "        if False:\n"),
    Mutant("an outage is the job's failure", modules.GATES, ">= MOST_HOLDS_OF_AN_OUTAGE:", ">= 0:"),
    Mutant(
        "a settle is put together twice",
        modules.SETTLE,
        "                return report\n",
        "                pass\n",
    ),
    Mutant(
        "a cancel request fences the run",
        modules.SETTLE,
        "if current.cancel_requested_at and not isinstance(outcome, Stopped):",
        "if False:",
    ),
    Mutant("conflicts count at once", modules.SETTLE, "if job.releases >= MOST_RELEASES:", "if True:"),
    Mutant(
        "a transaction that cannot be is an outage",
        modules.SETTLE,
        "except (EffectRefusedError, KeyReusedError, TransactionTooLargeError) as refused:",
        "except TransactionTooLargeError as refused:",
    ),
)
