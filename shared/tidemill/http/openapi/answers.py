"""The bodies of the responses, as models that only write the OpenAPI document. `application` builds the bodies."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, RootModel
from pydantic.json_schema import SkipJsonSchema

from tidemill.application.submission.validation import MOST_TAGS
from tidemill.domain.flows.flows import OnFailure
from tidemill.domain.job import DeathReason
from tidemill.domain.states import State
from tidemill.domain.steps.steps import MOST_STEPS
from tidemill.domain.waiting.signals import MOST_SIGNALS
from tidemill.names import Lane

Count = Annotated[int, Field(ge=0)]
Tags = Annotated[list[str], Field(max_length=MOST_TAGS)]
ErrorStatus = Annotated[int, Field(ge=400, le=599)]
#: A member that may be absent, and is never null.
Absent = SkipJsonSchema[None]


class Answer(BaseModel):
    """Every member is always present, and no others are."""

    model_config = ConfigDict(extra="forbid")


class Progress(Answer):
    done: int | None
    total: int | None
    at: datetime | None


class Debounce(Answer):
    key: str | None
    until: datetime = Field(description="No submission moves the job to a later time.")
    moves: Count
    first_moved_at: datetime | None
    replacements: Count
    first_replaced_at: datetime | None


class Wait(Answer):
    cause: str
    key: str
    since: datetime


class JobSummary(Answer):
    id: UUID
    type: str
    lane: Lane
    state: State
    attempt: Count = Field(description="Runs since the job was submitted, continued or redriven.")
    death: DeathReason | None
    progress: Progress
    cancel_requested_at: datetime | None
    group: str | None
    tags: Tags = Field(description="As submitted, sorted.")
    batch: UUID | None = Field(description="The batch that it belongs to.")
    debounce: Debounce | None = Field(
        description="How often later submissions have moved it, and replaced its payload."
    )
    flow: UUID | None = Field(description="The flow of which it is a node.")
    node: str | None = Field(description="The name of that node.")
    sequence: Count | None = Field(description="The position in its group.")
    run_at: datetime | None = Field(description="As submitted.")
    deadline: datetime | None
    useful_until: datetime | None = Field(description="A run that would begin later does not: the job expires.")
    created_at: datetime
    due: datetime | None = Field(
        description="The earliest time of the next run. While the job runs: the end of its lease."
    )
    wait: Wait | None = Field(
        description="What the job waits for while it is `parked`, or waited for until its next run ends."
    )
    claimed_at: datetime | None = Field(description="When the last run began.")
    finished_at: datetime | None
    expires_at: datetime | None = Field(description="The end of its retention. The job is deleted then.")
    undone_by: UUID | None = Field(description="The job that undoes its effect.")


class AttemptError(Answer):
    attempt: Count
    at: datetime
    class_: str = Field(alias="class")
    message: str
    retryable: bool
    next_due: datetime | None


class Redrive(Answer):
    at: datetime
    by: Literal["owner", "operator"]
    death: DeathReason | None


class Transition(Answer):
    at: datetime
    what: str = Field(description="The state after it; or `accepted`, `moved` or `payload replaced`.")
    cause: str = Field(description="For example `claimed`, the class of an error, a reason of death, `snoozed`.")
    attempt: Count | None = Field(description="The number of the run that it began or ended.")


class Step(Answer):
    name: str
    at: datetime
    attempt: Count


class Signal(Answer):
    name: str
    at: datetime
    data: Any = Field(description="Any JSON.")


class Undo(Answer):
    type: str
    lane: Lane
    payload: dict[str, Any]
    tags: list[str]


class Job(JobSummary):
    payload: dict[str, Any] | None = Field(description="Null if it was deleted before its job.")
    result: Any = Field(description="Any JSON; null until the job has succeeded.")
    errors: Annotated[list[AttemptError], Field(max_length=10)] = Field(
        description="The last failed attempts, oldest first."
    )
    redrives: Annotated[list[Redrive], Field(max_length=10)] = Field(
        description="Requeues after a death, oldest first; `by` is `owner` or `operator`."
    )
    cancelled_by: Literal["owner", "operator"] | None = Field(description="Who cancelled it, or asked its run to end.")
    history: list[Transition] = Field(
        description="What happened to the job, oldest first: the acceptance and the last transitions."
    )
    checkpoint: Any = Field(description="The state that the handler saved last, to resume from; any JSON.")
    steps: Annotated[list[Step], Field(max_length=MOST_STEPS)] = Field(
        description="The steps that have run, in order, until the job succeeds."
    )
    signals: Annotated[list[Signal], Field(max_length=MOST_SIGNALS)] = Field(
        description="The signals that it got, oldest first."
    )
    hops: Count = Field(description="Snoozes, waits, continuations and follow-ups in the chain so far.")
    parent: UUID | None = Field(description="The job whose success created this one.")
    undo: Undo | None = Field(description="The job that would undo its effect, as its handler said.")
    undone_at: datetime | None = Field(description="When the job that undoes it was submitted.")
    undoes: UUID | None = Field(description="The job whose effect this one undoes.")
    supersedes: UUID | None = Field(description="The earlier job that this one corrects.")
    superseded_by: UUID | None = Field(description="The later job that corrects this one.")


class UnreadableJob(Answer):
    id: UUID
    error: str


class JobPage(Answer):
    jobs: Annotated[list[JobSummary], Field(max_length=100)]
    unreadable: list[UnreadableJob] = Field(
        description="Jobs whose documents an operator must repair. No filter leaves them out."
    )
    cursor: str | None


class HealthCheck(Answer):
    name: str
    ok: bool
    age_seconds: Annotated[float, Field(ge=0)] | None


class Health(Answer):
    ok: bool
    checked_at: datetime
    checks: list[HealthCheck]


class Batch(Answer):
    id: UUID
    state: State = Field(description="Of the job that waits for the others.")
    jobs: Count = Field(description="The jobs that have joined, at `counted_at`.")
    counts: dict[str, Count] = Field(
        description="The jobs by state. `missing`: deleted before their end was seen; `unreadable`: an operator must "
        "repair their documents."
    )
    counted_at: datetime | None
    created_at: datetime
    closed_at: datetime | None
    cancel_requested_at: datetime | None = Field(description="When a cancel of the whole was requested.")
    finished_at: datetime | None
    expires_at: datetime | None
    batch: UUID | None = Field(description="The batch that this one is a job of.")
    tags: Tags


class Flow(Answer):
    id: UUID
    state: State = Field(description="Of the job that looks after the nodes.")
    size: Count = Field(description="The number of its nodes.")
    created_at: datetime
    cancel_requested_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    tags: Tags


class FlowEdge(Answer):
    node: str
    on_failure: OnFailure


class FlowNode(Answer):
    name: str
    type: str
    state: str = Field(description="`pending`, `skipped`, `blocked`, or the state of its job.")
    job_id: UUID | None = Field(description="Its job, once that has started.")
    after: list[FlowEdge]
    waits_for: list[str] = Field(description="The first parents that have not ended, at most five.")


class FlowGraph(Flow):
    counts: dict[str, Count] = Field(description="The nodes of this page, by state.")
    nodes: list[FlowNode]
    cursor: str | None = Field(description="For the next page; null in the last page.")


class Fault(Answer):
    pointer: str = Field(description="A JSON pointer into the body, or `#/` and the name of a parameter.")
    detail: str


class Problem(BaseModel):
    """A problem document, RFC 9457. Programs read `type`; `detail` is for a person."""

    type: Annotated[str, Field(pattern="^urn:tidemill:problem:[a-z-]+$", json_schema_extra={"format": "uri"})]
    title: str
    status: ErrorStatus
    detail: str
    instance: str | Absent = Field(
        default=None, description="The id of the request, for an unexpected error: quote it to the operator."
    )
    errors: Annotated[list[Fault], Field(min_length=1)] | Absent = None


class AcceptedJob(Answer):
    status: Literal[200, 202]
    job: JobSummary


class RefusedJob(Answer):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"not": {"properties": {"status": {"enum": [429, 503]}}}}
    )

    status: ErrorStatus
    problem: Problem


class JobToRetry(Answer):
    status: Literal[429, 503]
    problem: Problem
    retry_after: Count = Field(description="In seconds, as `Retry-After`.")


class BatchAnswer(RootModel[AcceptedJob | RefusedJob | JobToRetry]):
    """The response that a single submission of the job would get, without the payload."""


class BatchAnswers(Answer):
    jobs: list[BatchAnswer]


class GatewayMessage(BaseModel):
    """A response of API Gateway itself, before a function sees the request."""

    message: str | Absent = None


#: The other models are parts of these.
ANSWERS = (Job, JobPage, Batch, Flow, FlowGraph, Health, BatchAnswers, GatewayMessage)
