"""The JSON forms of a submission and an event. They check types and ranges, `application.validation` the rest."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from tidemill.application.validation import MOST_TAGS, SHORTEST_PERIOD, TAG_PATTERN
from tidemill.domain.batches import CALLBACKS, Batch
from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.domain.events import FIRST_VERSION, Event
from tidemill.domain.flows import MOST_EDGES, MOST_NODES, Edge, Flow, Node, OnFailure
from tidemill.domain.submission import Submission, Unique
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.names import LARGEST_BATCH, Lane
from tidemill.payload_model import details, faults

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
#: Visible ASCII, which every proxy passes on.
Key = Annotated[str, Field(pattern=r"^[!-~]{1,255}$")]


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class UniqueForm(Form):
    """One job of its type per period and unique key. Without a key, the payload is the key."""

    period_seconds: Period
    key: str | None = None


class SubmissionForm(Form):
    """The body of `POST /jobs`."""

    type: str = Field(min_length=1, max_length=100)
    payload: dict[str, Any] = Field(default_factory=dict)
    lane: Annotated[Lane, Field(strict=False)] | None = None
    delay_seconds: Delay | None = None
    run_at: Moment | None = None
    group: str | None = None
    deadline: Moment | None = None
    max_age_seconds: Age | None = None
    supersedes: str | None = None
    unique: UniqueForm | None = None
    tags: Annotated[list[Tag], Field(max_length=MOST_TAGS)] | None = None
    batch: str | None = None
    debounce_seconds: Delay | None = None
    debounce_key: str | None = None
    debounce_max_seconds: Delay | None = None
    replace: Literal["payload"] | None = None

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

    idempotency_key: Key | None = None


class EventForm(Form):
    """The body of `POST /events`."""

    type: str = Field(min_length=1, max_length=100)
    data: dict[str, Any] = Field(default_factory=dict)
    version: Annotated[int, Field(ge=FIRST_VERSION)] = FIRST_VERSION
    group: str | None = None

    def event(self, *, key: str | None) -> Event:
        return Event(type=self.type, data=self.data, version=self.version, key=key, group=self.group)


class CallbackForm(Form):
    """A job that a batch submits when it ends."""

    type: str = Field(min_length=1, max_length=100)
    payload: dict[str, Any] = Field(default_factory=dict)
    lane: Annotated[Lane, Field(strict=False)] | None = None
    group: str | None = None
    max_age_seconds: Age | None = None
    tags: Annotated[list[Tag], Field(max_length=MOST_TAGS)] | None = None

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

    on_success: CallbackForm | None = None
    on_failure: CallbackForm | None = None
    on_complete: CallbackForm | None = None
    batch: str | None = None
    tags: Annotated[list[Tag], Field(max_length=MOST_TAGS)] | None = None

    def opened(self, *, key: str | None) -> Batch:
        callbacks = {name: form.submission() for name in CALLBACKS if (form := getattr(self, name)) is not None}
        return Batch(**callbacks, key=key, batch=self.batch, tags=self.tags or ())


class EdgeForm(Form):
    """A parent of a node, with the rule for its failure."""

    node: str
    on_failure: Annotated[OnFailure, Field(strict=False)] = OnFailure.FAIL

    def edge(self) -> Edge:
        return Edge(node=self.node, on_failure=self.on_failure)


def _as_edge(given: Any) -> Any:
    return {"node": given} if isinstance(given, str) else given


#: Not a union, whose faults would name its alternatives in their paths.
EdgeOrName = Annotated[EdgeForm, BeforeValidator(_as_edge, json_schema_input_type=str | EdgeForm)]


class NodeForm(CallbackForm):
    """A node of a flow."""

    name: str
    after: list[EdgeOrName] = Field(default_factory=list)

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
        min_length=1
    )


class FlowForm(NodesForm):
    """The body of `POST /flows`."""

    tags: Annotated[list[Tag], Field(max_length=MOST_TAGS)] | None = None

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
