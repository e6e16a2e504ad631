"""How long a job waits, what its messages say, and what functions report."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

_DISPATCH: Final = "tidemill.domain.dispatch"

WAITING: Final = (
    Mutant("messages are not delayed", modules.QUEUES, '        "DelaySeconds": dispatch.delay_seconds,\n', ""),
    Mutant(
        "messages are delayed twice as long",
        _DISPATCH,
        "math.ceil(wait.total_seconds())",
        "math.ceil(wait.total_seconds() * 2)",
    ),
    Mutant(
        "the time that a handler names is ignored",
        modules.OUTCOMES,
        "delay = leaf.delay if isinstance(leaf, RetryAfter) else None",
        "delay = None",
    ),
    Mutant(
        "retries do not back off",
        "tidemill.domain.retry",
        "self.backoff_seconds * 2.0 ** (attempt - 1))",
        "self.backoff_cap_seconds)",
    ),
    Mutant(
        "follow-up jobs begin with no hops",
        modules.SUBMIT,
        "hops = 0 if isinstance(submission, Callback) else parent.hops + 1",
        "hops = 0",
    ),
    Mutant(
        "hops have no end", modules.OUTCOMES, "if job.hops > policy.max_hops:", "if job.hops > policy.max_hops + 9:"
    ),
    Mutant(
        "a type is unknown at once",
        modules.GATES,
        "MOST_HOLDS_OF_A_VERSION: Final = 20",
        "MOST_HOLDS_OF_A_VERSION: Final = 0",
    ),
    Mutant("DLQ messages do not say why", _DISPATCH, 'death=job.death or "",', 'death="",'),
    Mutant(
        "the DLQ messages of dead jobs are deleted",
        "tidemill.application.dead_letter_sweep",
        "action is DeadLetterAction.DEAD:\n            done.keep.append(dead_letter)",
        "action is DeadLetterAction.DEAD:\n            done.outdated.append(dead_letter)",
    ),
    Mutant(
        "reconcile counts no repairs",
        modules.RECONCILE,
        "                actions[result] += 1\n",
        "                pass\n",
    ),
    Mutant(
        "all jobs of a tenant are listed in one shard",
        "tidemill.dynamodb.indexes",
        "return crc32(job_id.encode()) % self.shards",
        "return 0",
    ),
)
