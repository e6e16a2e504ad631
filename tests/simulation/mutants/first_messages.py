"""First messages, which submissions send as a hint."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

HINTED: Final = (
    Mutant(
        "publish trusts that a submission sent the first message",
        modules.DISPATCH,
        "    return job.state is not State.QUEUED or job.generation != 1\n",
        "    return True\n",
    ),
    Mutant(
        "publish takes each message for the first of its job",
        modules.PUBLISH,
        "is_first=change.before is None and first_message(change.after, now=now) is not None,",
        "is_first=True,",
    ),
    Mutant(
        "a job that cannot be read has begun",
        modules.PUBLISH,
        "read saves messages, and its failure must not stop them\n            return ()",
        "read saves messages, and its failure must not stop them\n            return set(first.values())",
    ),
    Mutant(
        "a first message that SQS refuses refuses its submission",
        modules.FIRST_MESSAGES,
        "        return refusals[0].error\n",
        "        raise RuntimeError(refusals[0].error)\n",
    ),
)
