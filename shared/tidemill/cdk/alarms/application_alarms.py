"""The alarms of an HTTP API and of functions, which an application has as the engine does."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from aws_cdk import Duration

from tidemill.cdk.alarms.alarm import LASTING, LASTING_BOUND, Alarm, Entry, Heading
from tidemill.cdk.alarms.alarm_metrics import server_errors, sum_of
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.http_api import Api

FIVE_MINUTES: Final = Duration.minutes(5)


def api_alarms(api: Api, functions: Sequence[JobFunction], *, of: str) -> Iterator[Entry]:
    """The alarms of one HTTP API and of the functions behind it."""
    yield Alarm(
        id="ApiErrors",
        heading=Heading.API_ERRORS,
        meaning="The API answers callers with 5xx errors.",
        metric=server_errors(api).with_(period=Duration.minutes(1)),
        m_of_n=LASTING,
        within=LASTING_BOUND,
    )
    yield from function_alarms(of, {function.verb: function for function in functions})


def function_alarms(of: str, functions: Mapping[str, JobFunction]) -> Iterator[Entry]:
    """At most ten functions. A handler of the engine raises by no intent: an error is a crash, a timeout or a bug.

    The exception is a worker that ends its process because of a stray thread: see the alarm `StrayThreads`.
    """
    yield Alarm(
        id=f"FunctionErrors-{of}",
        heading=Heading.FUNCTION_ERRORS,
        meaning=f"A function crashes or runs out of time again and again: {', '.join(functions)}.",
        metric=sum_of({id_: each.function.metric_errors() for id_, each in functions.items()}, FIVE_MINUTES),
        # A single crash harms no job.
        m_of_n=(2, 3),
        within=timedelta(minutes=12),
    )
    yield Alarm(
        id=f"FunctionThrottles-{of}",
        heading=Heading.FUNCTION_THROTTLES,
        meaning=f"Lambda throttles a function, because no concurrency is available for it: {', '.join(functions)}.",
        metric=sum_of({id_: each.function.metric_throttles() for id_, each in functions.items()}, FIVE_MINUTES),
        # A burst throttles while Lambda scales, and may touch two periods. Throttling that lasts means a limit.
        m_of_n=(3, 3),
        within=timedelta(minutes=17),
    )
