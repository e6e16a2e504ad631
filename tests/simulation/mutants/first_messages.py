"""First messages, which submissions and workers send as a hint."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

HINTED: Final = (
    Mutant(
        "publish trusts that a first message was sent",
        modules.DISPATCH,
        "    return current.state is not queued.state\n",
        "    return True\n",
    ),
    Mutant(
        "publish takes each message for one that was sent at once",
        modules.PUBLISH,
        "may_be_sent=may_be_sent(change.before, change.after, now=now),",
        "may_be_sent=True,",
    ),
    Mutant(
        "a job that cannot be read has begun",
        modules.FIRST_MESSAGE_REACTION,
        "its failure must not stop them\n            return {}",
        "its failure must not stop them\n            return {each.sequence: None for each in hinted}",
    ),
    Mutant(
        "a document of an earlier generation shows a run that has begun",
        modules.DISPATCH,
        "return current.generation > queued.generation",
        "return True",
    ),
    Mutant(
        "a job of a group has first messages at once",
        modules.DISPATCH,
        "if job.state not in {State.QUEUED, State.RETRYING} or job.group is not None:",
        "if job.state not in {State.QUEUED, State.RETRYING}:",
    ),
    Mutant(
        "a first message that SQS refuses refuses its submission",
        modules.FIRST_MESSAGES,
        "        return refusals[0].error\n",
        "        raise RuntimeError(refusals[0].error)\n",
    ),
)
