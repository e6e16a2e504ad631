"""The JSON forms of a submission and an event. They check types and ranges, `application.validation` the rest."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from tidemill.application.submission.validation import MOST_TAGS, SHORTEST_PERIOD, TAG_PATTERN
from tidemill.declarations.payload_model import details, faults
from tidemill.domain.batches.batches import CALLBACKS, Batch
from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.domain.events.events import FIRST_VERSION, LONGEST_EVENT_GROUP, Event
from tidemill.domain.flows.flows import MOST_EDGES, MOST_NODES, Edge, Flow, Node, OnFailure
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.names import LARGEST_BATCH, Lane

#: RFC 3339, section 5.6. `fromisoformat` accepts more, such as week dates and times without an offset.
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def _moment(value: Any) -> datetime:
    if not isinstance(value, str) or not _RFC_3339.fullmatch(value):
        raise ValueError("invalid time; use RFC 3339 with an offset from UTC, such as 2030-01-31T08:00:00Z")
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except OverflowError:
        raise ValueError("time out of range; in UTC, use the years 1 to 9999") from None


Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
#: Bounded here, because a `timedelta` holds less than a float.
Delay = Annotated[float, Field(ge=0, le=LONGEST_SPAN.total_seconds(), allow_inf_nan=False)]
Age = Annotated[float, Field(gt=0, le=LONGEST_SPAN.total_seconds(), allow_inf_nan=False)]
Period = Annotated[
    float, Field(ge=SHORTEST_PERIOD.total_seconds(), le=LONGEST_SPAN.total_seconds(), allow_inf_nan=False)
]
Tag = Annotated[str, Field(pattern=f"^{TAG_PATTERN}$")]
Tags = Annotated[
    Annotated[list[Tag], Field(max_length=MOST_TAGS)] | None,
    Field(description="Up to five labels to find the job by, without repeats. Their order means nothing."),
]
JobTypeName = Annotated[str, Field(min_length=1, max_length=100, description="The name of the job type.")]
Payload = Annotated[
    dict[str, Any], Field(description="The input of the handler. It must fit the payload model of the type.")
]
LessUrgentLane = Annotated[
    Annotated[Lane, Field(strict=False)] | None, Field(description="A lane less urgent than the type's own lane.")
]
Group = Annotated[
    str | None,
    Field(
        description="Jobs of a group run one at a time, in the order of their acceptance. 1 to 128 bytes.",
    ),
]
MaxAge = Annotated[
    Age | None,
    Field(description="Once older than this, counted from its earliest time, the job expires instead of a run."),
]
#: Visible ASCII, which every proxy passes on.
Key = Annotated[str, Field(pattern=r"^[!-~]{1,255}$")]


class Form(BaseModel):
    # A request needs one or two of the forms, and each takes a millisecond of a cold start to build.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class UniqueForm(Form):
    """One job of its type per period and unique key. Without a key, the payload is the key."""

    period_seconds: Period
    key: str | None = None


class SubmissionForm(Form):
    """The body of `POST /jobs`."""

    type: JobTypeName
    payload: Payload = Field(default_factory=dict)
    lane: LessUrgentLane = None
    delay_seconds: Delay | None = Field(
        default=None, description="The delay before the earliest run. Not together with `run_at`."
    )
    run_at: Moment | None = Field(
        default=None,
        description=f"The job runs no sooner than at this time, at most {LONGEST_SPAN.days} days ahead.",
    )
    group: Group = None
    deadline: Moment | None = Field(default=None, description="The job dies if no run has begun by then.")
    max_age_seconds: MaxAge = None
    supersedes: str | None = Field(
        default=None,
        description="The key or the id of an earlier job of the caller. The new job runs once that one has no effect.",
    )
    unique: UniqueForm | None = Field(
        default=None, description="One job of its type per period. Not together with an idempotency key."
    )
    tags: Tags = None
    batch: str | None = Field(default=None, description="The id of an open batch of the caller that the job joins.")
    debounce_seconds: Delay | None = Field(
        default=None,
        description="The job runs once the caller has submitted no more of its type and debounce key for so long: "
        "a later submission moves it, if it has not begun, instead of making another job.",
    )
    debounce_key: str | None = Field(
        default=None, description="1 to 128 bytes. Without it, submissions of the same payload belong together."
    )
    debounce_max_seconds: Delay | None = Field(
        default=None,
        description="The job runs this long after its first submission at the latest; ten times "
        "`debounce_seconds` by default.",
    )
    replace: Literal["payload"] | None = Field(
        default=None,
        description="The payload of the last submission counts, and not that of the first. Needs `debounce_key`.",
    )

    def submission(self, *, key: str | None) -> Submission:
        return Submission(
            type=self.type,
            payload=self.payload,
            lane=self.lane,
            delay=_span(self.delay_seconds),
            run_at=self.run_at,
            group=self.group,
            deadline=self.deadline,
            max_age=_span(self.max_age_seconds),
            key=key,
            tags=self.tags or (),
            supersedes=self.supersedes,
            batch=self.batch,
            debounce=_span(self.debounce_seconds),
            debounce_key=self.debounce_key,
            debounce_max=_span(self.debounce_max_seconds),
            replace=self.replace,
            unique=None
            if self.unique is None
            else Unique(period=timedelta(seconds=self.unique.period_seconds), key=self.unique.key),
        )


def _span(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


class BatchedForm(SubmissionForm):
    """One job of `POST /jobs/batch`. It has no headers, so its idempotency key is a member."""

    idempotency_key: Key | None = Field(
        default=None, description="Submissions of one caller with the same key and body create one job."
    )


class EventForm(Form):
    """The body of `POST /events`."""

    type: str = Field(min_length=1, max_length=100, description="The name of a declared event type.")
    data: dict[str, Any] = Field(
        default_factory=dict, description="It must fit the model of the event type and version."
    )
    version: int = Field(default=FIRST_VERSION, ge=FIRST_VERSION, description="The version of the event type.")
    group: str | None = Field(
        default=None,
        description="Each consumer runs the events of a group one at a time, in the order of their acceptance. "
        f"1 to {LONGEST_EVENT_GROUP} bytes.",
    )

    def event(self, *, key: str | None) -> Event:
        return Event(type=self.type, data=self.data, version=self.version, key=key, group=self.group)


class CallbackForm(Form):
    """A job that a batch submits when it ends."""

    type: JobTypeName
    payload: Payload = Field(default_factory=dict)
    lane: LessUrgentLane = None
    group: Group = None
    max_age_seconds: MaxAge = None
    tags: Tags = None

    def submission(self) -> Submission:
        return Submission(
            type=self.type,
            payload=self.payload,
            lane=self.lane,
            group=self.group,
            max_age=_span(self.max_age_seconds),
            tags=self.tags or (),
        )


class OpeningForm(Form):
    """The body of `POST /batches`."""

    on_success: CallbackForm | None = Field(
        default=None, description="Submitted once no job of the batch is dead, after a redrive too."
    )
    on_failure: CallbackForm | None = Field(
        default=None, description="Submitted the first time that all jobs are at rest and some are dead."
    )
    on_complete: CallbackForm | None = Field(
        default=None, description="Submitted the first time that all jobs are at rest."
    )
    batch: str | None = Field(
        default=None, description="The id of an open batch of the caller that this one is a job of."
    )
    tags: Tags = None

    def opened(self, *, key: str | None) -> Batch:
        callbacks = {name: form.submission() for name in CALLBACKS if (form := getattr(self, name)) is not None}
        return Batch(**callbacks, key=key, batch=self.batch, tags=self.tags or ())


class EdgeForm(Form):
    """A parent of a node, with the rule for its failure."""

    node: str = Field(description="The name of a parent.")
    on_failure: OnFailure = Field(
        default=OnFailure.FAIL,
        strict=False,
        description="If the parent fails: the node does not start unless a redrive lets the parent succeed, is "
        "skipped, or starts all the same.",
    )

    def edge(self) -> Edge:
        return Edge(node=self.node, on_failure=self.on_failure)


def _as_edge(given: Any) -> Any:
    return {"node": given} if isinstance(given, str) else given


#: Not a union, whose faults would name its alternatives in their paths.
EdgeOrName = Annotated[EdgeForm, BeforeValidator(_as_edge, json_schema_input_type=str | EdgeForm)]


class NodeForm(CallbackForm):
    """A node of a flow."""

    name: str = Field(description="Unique in its flow.")
    after: list[EdgeOrName] = Field(
        default_factory=list,
        description="Its parents: the name of each, or its name and what happens if it fails.",
    )

    def node(self) -> Node:
        return Node(self.name, self.submission(), after=[each.edge() for each in self.after])


def _within_a_flow(given: Any) -> Any:
    nodes = given if isinstance(given, list) else []
    edges = sum(len(node["after"]) for node in nodes if isinstance(node, dict) and isinstance(node.get("after"), list))
    if len(nodes) > MOST_NODES or edges > MOST_EDGES:
        raise ValueError(f"a flow has at most {MOST_NODES} nodes and {MOST_EDGES} edges")
    return given


class NodesForm(Form):
    """The body of `POST /flows/{id}/nodes`."""

    # Each wrong node, and each wrong edge, takes some kilobytes until the answer is written.
    nodes: Annotated[list[NodeForm], BeforeValidator(_within_a_flow, json_schema_input_type=list[NodeForm])] = Field(
        min_length=1, description="In any order. Their parents may be any nodes of the flow."
    )


class FlowForm(NodesForm):
    """The body of `POST /flows`."""

    tags: Tags = None

    def flow(self, *, key: str | None) -> Flow:
        return Flow(nodes=[form.node() for form in self.nodes], key=key, tags=self.tags or ())


Read = TypeVar("Read", bound=Form)

#: Members that need another one. If that one is invalid, nothing can be said about them.
_NEEDED_BY: Final[Mapping[str, frozenset[str]]] = {
    "debounce_seconds": frozenset({"debounce_key", "debounce_max_seconds", "replace"})
}


def read_form(form: type[Read], body: Any, others: Callable[[Read], Sequence[Fault]]) -> Read:
    """Raises `InvalidPayloadError` with every fault.

    If the body does not fit `form`, `others` checks the members that do, so that one response names all faults.
    """
    try:
        return form.model_validate(body)
    except ValidationError as error:
        found = faults(error)
        unfit = {detail["loc"][0] for detail in details(error) if detail["loc"]}
    if isinstance(body, dict) and "type" in body.keys() - unfit:
        left_out = unfit.union(*(_NEEDED_BY.get(str(name), ()) for name in unfit))
        known = form.model_fields.keys() - left_out
        try:
            fitting = form.model_validate({name: body[name] for name in known & body.keys()})
        except ValidationError as error:
            # A name that is not Unicode has no path, and pydantic reports nothing beside it.
            raise InvalidPayloadError([*found, *faults(error)]) from error
        # A payload model may have a defect, and raise anything: the faults of the form are an answer without it, too.
        with suppress(Exception):
            # `others` saw defaults in place of the invalid members, so its faults about them are wrong.
            found += [fault for fault in others(fitting) if f"{fault.path}/".split("/")[1] not in unfit]
    raise InvalidPayloadError(found)


class BatchForm(Form):
    """The body of `POST /jobs/batch`. Each job is parsed alone, so an invalid job does not affect the others."""

    jobs: list[Any] = Field(min_length=1, max_length=LARGEST_BATCH)
