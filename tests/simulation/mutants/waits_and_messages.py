"""How long a job waits, what its messages say, and what functions report."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

_DISPATCH: Final = "tidemill.domain.dispatch.dispatch"

WAITING: Final = (
    Mutant("messages are not delayed", modules.QUEUES, "_entry", "'DelaySeconds': dispatch.delay_seconds", ""),
    Mutant(
        "messages are delayed twice as long", _DISPATCH, "dispatch", "wait.total_seconds()", "wait.total_seconds() * 2"
    ),
    Mutant(
        "the time that a handler names is ignored",
        modules.OUTCOMES,
        "Failed.because",
        "leaf.delay if isinstance(leaf, RetryAfter) else None",
        "None",
    ),
    Mutant(
        "retries do not back off",
        "tidemill.domain.attempt.retry",
        "RetryPolicy.delay_seconds",
        "self.backoff_seconds * 2.0 ** (attempt - 1)",
        "self.backoff_cap_seconds",
    ),
    Mutant(
        "follow-up jobs begin with no hops",
        modules.SUBMIT,
        "Submit.prepare_follow_up",
        "parent.hops + 1 if callback is None else 0",
        "0",
    ),
    Mutant(
        "hops have no end", modules.OUTCOMES, "_used_up", "job.hops > policy.max_hops", "job.hops > policy.max_hops + 9"
    ),
    Mutant(
        "a type is unknown at once",
        modules.ATTEMPT_HOLDS,
        "",
        "MOST_HOLDS_OF_A_VERSION: Final = 20",
        "MOST_HOLDS_OF_A_VERSION: Final = 0",
    ),
    Mutant("DLQ messages do not say why", _DISPATCH, "_dead_letter", "job.death or ''", "''"),
    Mutant(
        "the DLQ messages of dead jobs are deleted",
        "tidemill.application.dispatch.dead_letter_sweep",
        "_sort",
        "if dead_letter.newer or key in unreadable or action is DeadLetterAction.DEAD:\n"
        "    done.keep.append(dead_letter)\n"
        "elif action is DeadLetterAction.OUTDATED or job is None:\n"
        "    done.outdated.append(dead_letter)\n"
        "elif _nudged(nudger, job, done):\n"
        "    done.nudged.append(dead_letter)\n"
        "else:\n"
        "    done.keep.append(dead_letter)",
        "if dead_letter.newer or key in unreadable or action is DeadLetterAction.DEAD:\n"
        "    done.outdated.append(dead_letter)\n"
        "elif action is DeadLetterAction.OUTDATED or job is None:\n"
        "    done.outdated.append(dead_letter)\n"
        "elif _nudged(nudger, job, done):\n"
        "    done.nudged.append(dead_letter)\n"
        "else:\n"
        "    done.keep.append(dead_letter)",
    ),
    Mutant("reconcile counts no repairs", modules.RECONCILE, "Reconciler.run.work", "actions[result] += 1", "pass"),
    Mutant(
        "all jobs of a tenant are listed in one shard",
        "tidemill.dynamodb.indexes",
        "Indexes._shard",
        "crc32(job_id.encode()) % self.shards",
        "0",
    ),
)
