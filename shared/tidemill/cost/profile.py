"""A profile: what a job is like, as far as its cost depends on it."""

from dataclasses import dataclass, fields

from tidemill.dynamodb.payloads import LARGEST_INLINE_BYTES, LARGEST_ITEM_BYTES
from tidemill.names import LARGEST_BATCH, LARGEST_BODY_BYTES


class ProfileError(ValueError):
    """A member of a profile is out of its range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Jobs of one kind. Each default is what a small job of a stage with default settings has."""

    #: JSON text of the payload and of the result.
    payload_bytes: int = 100
    result_bytes: int = 100
    #: The setting of the stage: a larger payload is a file.
    payload_item_bytes: int = LARGEST_ITEM_BYTES
    #: By how much the setting `compress_payloads` makes such a payload smaller. 1: off.
    compression: float = 1.0
    #: Jobs in one request: 1 for `POST /jobs`, more for `POST /jobs/batch`. 0: submitted from Python, without the API.
    per_request: int = 1
    #: Jobs in one batch of a worker and of the publisher, on average. Few jobs a second travel alone.
    batch: int = 10
    #: Runs of a job, on average. Each further one follows a failed run.
    attempts: float = 1.0
    #: Wall time of the handler, which overlaps with that of the other jobs of the batch.
    handler_ms: float = 0.0
    #: Memory of the worker.
    memory_mb: int = 512
    log_sample_rate: float = 1.0
    listing: bool = True
    #: Each job waits for the one before it in its group.
    group: bool = False
    #: Each run takes a slot of a limit that has room.
    limit: bool = False
    #: Types with `commit="grouped"`, whose first runs share their claims and settles.
    grouped: bool = False
    archive: bool = False
    #: A lane with `first_message_at_once`. Only `POST /jobs` and `POST /jobs/batch` send such messages.
    first_message: bool = False
    #: How long ended jobs, and log lines, are kept.
    retention_days: float = 30.0
    log_retention_days: float = 30.0
    point_in_time_recovery: bool = True

    def __post_init__(self) -> None:
        for name, least, most in (
            ("payload_bytes", 2, LARGEST_BODY_BYTES),
            ("result_bytes", 0, 32 * 1024),
            ("payload_item_bytes", 0, LARGEST_ITEM_BYTES),
            ("compression", 1, 100),
            ("per_request", 0, LARGEST_BATCH),
            # The most of a lane, and of the publisher.
            ("batch", 1, 100),
            ("attempts", 1, 25),
            ("handler_ms", 0, 900_000),
            ("memory_mb", 128, 10_240),
            ("log_sample_rate", 0, 1),
            ("retention_days", 0, 3_650),
            ("log_retention_days", 0, 3_650),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                raise ProfileError(f"{name} {value:g} must be from {least} to {most}")

    @property
    def inline(self) -> bool:
        """Whether the document has the payload."""
        return self.payload_bytes <= LARGEST_INLINE_BYTES

    @property
    def in_file(self) -> bool:
        return not self.inline and self.stored_bytes > self.payload_item_bytes

    @property
    def stored_bytes(self) -> float:
        """Bytes of a payload in an item."""
        return self.payload_bytes / self.compression

    def as_json(self) -> dict[str, object]:
        return {each.name: getattr(self, each.name) for each in fields(Profile)}
