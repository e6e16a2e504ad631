"""A debounce window: the submissions that one debounced job stands for. `debounce` says what each does to its job."""

from datetime import datetime

from msgspec import Struct


class DebounceWindow(Struct, frozen=True, kw_only=True):
    """What a debounced job knows of its submissions. Its first one sets it, and each that changes the job writes it."""

    #: Derived from the tenant, the job type and the debounce key, or without one the payload.
    name: str
    #: The debounce key; None if the payload takes its place.
    key: str | None = None
    #: No submission moves the job to a later time.
    until: datetime
    #: The `due` of the last dispatch: its message arrives then. Before that, a job that is moved on needs no other one.
    sent_for: datetime
    #: Fresh for each submission that changed the job, so that an SDK retry of one recognizes its own success.
    last: str
    #: The time of that submission, and later than those of all before it: see `debounce.joined_at`. None if no later
    #: submission has changed the job.
    joined_at: datetime | None = None
    #: Whether the payload of a submission that is not written yet replaces that of the job. Not stored.
    replaces: bool = False
    #: How often a submission moved the job, and when the first did.
    moves: int = 0
    first_moved_at: datetime | None = None
    #: How often a submission replaced the payload, and when the first did.
    replacements: int = 0
    first_replaced_at: datetime | None = None
