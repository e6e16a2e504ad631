"""Publish sends no message to a job that has begun by the first message, which its writer sent at once."""

from collections.abc import Collection, Mapping, Sequence

from tidemill.application.dispatch.reactions import DueMessage
from tidemill.application.ports import PublishStore
from tidemill.domain.dispatch.dispatch import has_begun
from tidemill.names import Lane


class FirstMessageReaction:
    """`Withhold`: holds back the messages of jobs that have begun. `lanes`: those with first messages."""

    def __init__(self, *, store: PublishStore, lanes: Collection[Lane]) -> None:
        self._store = store
        self._lanes = lanes

    def __call__(self, messages: Sequence[DueMessage]) -> Mapping[str, None]:
        hinted = [each for each in messages if each.may_be_sent and each.message.lane in self._lanes]
        if not hinted:
            return {}
        try:
            # A batch may have several changes of a job, which is read once.
            found = self._store.get_many(list(dict.fromkeys((each.job.tenant, each.job.id) for each in hinted)))
        except Exception:  # noqa: BLE001 - the read saves messages, and its failure must not stop them
            return {}
        jobs = {(job.tenant, job.id): job for job in found}
        return {
            each.sequence: None
            for each in hinted
            if (job := jobs.get((each.job.tenant, each.job.id))) and has_begun(job, each.job)
        }
