"""The declared order in which features take part in a submission. Composition roots and tests build a `Submit` here."""

from collections.abc import Sequence
from typing import Final

from tidemill.application.batches.batch_placement import BatchPlacement, batch_rule
from tidemill.application.corrections.supersede_placement import SupersedePlacement, supersede_rule
from tidemill.application.debounce.debounce_placement import DebouncePlacement, debounce_rule
from tidemill.application.groups.group_placement import GroupPlacement, group_rule
from tidemill.application.job_types import JobTypes
from tidemill.application.ports import Clock, NewToken, SubmitStore, WriterPayloads
from tidemill.application.submission.new_jobs import Insert, NewJobs
from tidemill.application.submission.placements import Placement
from tidemill.application.submission.submit import Admit, InsertOnce, Submit, admit_all, insert_directly
from tidemill.application.submission.validation import (
    Rule,
    key_rule,
    lane_rule,
    tag_rule,
    time_rule,
    unique_rule,
    unique_type_rule,
)
from tidemill.application.waiting.catch_up_placement import CatchUpPlacement

#: Callers get the faults in this order.
RULES: Final[Sequence[Rule]] = (
    lane_rule,
    group_rule,
    key_rule,
    time_rule,
    tag_rule,
    unique_type_rule,
    supersede_rule,
    batch_rule,
    unique_rule,
    debounce_rule,
)


def placements(
    jobs: NewJobs,
    *,
    store: SubmitStore,
    clock: Clock,
    supersede: Insert | None = None,
    debounce: Insert | None = None,
) -> Sequence[Placement]:
    """The first one that holds a job inserts it: a job of a group may join a batch, or supersede another one."""
    return (
        SupersedePlacement(supersede),
        BatchPlacement(jobs, store=store, clock=clock),
        DebouncePlacement(debounce),
        GroupPlacement(jobs),
        CatchUpPlacement(),
    )


def submit(
    *,
    store: SubmitStore,
    payloads: WriterPayloads,
    job_types: JobTypes,
    clock: Clock,
    new_id: NewToken,
    insert_once: InsertOnce = insert_directly,
    admit: Admit = admit_all,
    supersede: Insert | None = None,
    debounce: Insert | None = None,
) -> Submit:
    """Build the use case with all features.

    `supersede` is `Superseder.accept`, and `debounce` is `Debouncer.accept`. Without one of them, a submission that
    asks for it is refused.
    """
    jobs = NewJobs(store=store, payloads=payloads, clock=clock)
    return Submit(
        jobs=jobs,
        job_types=job_types,
        clock=clock,
        new_id=new_id,
        rules=RULES,
        placements=placements(jobs, store=store, clock=clock, supersede=supersede, debounce=debounce),
        insert_once=insert_once,
        admit=admit,
    )
