"""When a failed job runs again. Pure: the random draw is an argument."""

from typing import Final

from msgspec import Struct

from tidemill.names import LARGEST_MAX_ATTEMPTS

#: A day: a job that fails for longer needs an operator.
LONGEST_BACKOFF_SECONDS: Final = 86_400.0
DEFAULT_BACKOFF_CAP_SECONDS: Final = 900.0
LARGEST_MAX_HOPS: Final = 100_000
#: The least attempts of a type with grouped commit: a worker that dies uses up an attempt of each job that it has
#: claimed with others.
LEAST_GROUPED_ATTEMPTS: Final = 3


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often and after which delay a job is retried, and how often it may snooze or continue."""

    max_attempts: int = 8
    #: Mean delay after the first failure is half of this; it doubles with each failure.
    backoff_seconds: float = 2.0
    backoff_cap_seconds: float = DEFAULT_BACKOFF_CAP_SECONDS
    #: Snoozes, continuations and links of a chain of follow-up jobs.
    max_hops: int = 1_000

    def __post_init__(self) -> None:
        if not 1 <= self.max_attempts <= LARGEST_MAX_ATTEMPTS:
            raise ValueError(f"max_attempts is {self.max_attempts}; it must lie within 1 and {LARGEST_MAX_ATTEMPTS}")
        if not 0 <= self.max_hops <= LARGEST_MAX_HOPS:
            raise ValueError(f"max_hops is {self.max_hops}; it must lie within 0 and {LARGEST_MAX_HOPS}")
        if not 0 <= self.backoff_seconds <= self.backoff_cap_seconds <= LONGEST_BACKOFF_SECONDS:
            raise ValueError(
                f"backoff must satisfy 0 <= backoff_seconds <= backoff_cap_seconds <= {LONGEST_BACKOFF_SECONDS:g}; "
                f"got {self.backoff_seconds:g} and {self.backoff_cap_seconds:g}"
            )

    def delay_seconds(self, attempt: int, draw: float) -> float:
        """Full jitter: uniform between zero and a ceiling that doubles with each attempt.

        `draw` lies in [0, 1). Spreading over the whole range empties a thundering herd soonest:
        https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
        """
        return draw * min(self.backoff_cap_seconds, self.backoff_seconds * 2.0 ** (attempt - 1))
