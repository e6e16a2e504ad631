"""First messages, which submissions and workers send as a hint."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

HINTED: Final = (
    Mutant(
        "publish trusts that a first message was sent",
        modules.DISPATCH,
        "has_begun",
        "current.state is not queued.state",
        "True",
    ),
    Mutant(
        "publish takes each message for one that was sent at once",
        modules.PUBLISH,
        "Publisher._due_messages",
        "may_be_sent(change.before, change.after, now=now)",
        "True",
    ),
    Mutant(
        "a job that cannot be read has begun",
        modules.FIRST_MESSAGE_REACTION,
        "FirstMessageReaction.__call__",
        "except Exception:\n    return {}",
        "except Exception:\n    return {each.sequence: None for each in hinted}",
    ),
    Mutant(
        "a document of an earlier generation shows a run that has begun",
        modules.DISPATCH,
        "has_begun",
        "current.generation > queued.generation",
        "True",
    ),
    Mutant(
        "a job of a group has first messages at once",
        modules.DISPATCH,
        "message_at_once",
        "job.state not in {State.QUEUED, State.RETRYING} or job.group.key is not None",
        "job.state not in {State.QUEUED, State.RETRYING}",
    ),
    Mutant(
        "a first message that SQS refuses refuses its submission",
        modules.FIRST_MESSAGES,
        "FirstMessages.send",
        "return refusals[0].error",
        "raise RuntimeError(refusals[0].error)",
    ),
)
