"""How long the functions take, in seconds of one invocation: their CPU time by its share of a processor, and calls."""

import math
from typing import Final

from tidemill.cost import measured
from tidemill.cost.profile import Profile

#: The writes of one request of many jobs that run at once: the threads of the function that submits.
_OVERLAPPING_SUBMISSIONS: Final = 10
#: The files that the archive writes at once.
_OVERLAPPING_FILES: Final = 8


def invocation_seconds(cpu_ms: float, waiting_ms: float, memory_mb: int) -> float:
    """CPU time takes longer the smaller the share of a processor is. Our functions use one processor at most."""
    share = min(1.0, memory_mb / measured.ONE_PROCESSOR_MB)
    return (cpu_ms / share + waiting_ms) / 1000


def submission_seconds(profile: Profile) -> float:
    """Seconds of one request, with all its jobs."""
    calls_ms = measured.CALL_MS * (1 + profile.group * measured.GROUP_SUBMIT_CALLS) + _payload_ms(profile)
    waiting_ms = math.ceil(profile.per_request / _OVERLAPPING_SUBMISSIONS) * calls_ms
    if profile.first_message:
        waiting_ms += measured.CALL_MS  # the messages of the request, all at once
    return invocation_seconds(profile.per_request * measured.SUBMIT_CPU_MS, waiting_ms, measured.FUNCTION_MB)


def publication_seconds(records: int) -> float:
    """Seconds of one batch. Its messages are sent ten at a time, all at once."""
    return invocation_seconds(records * measured.PUBLISH_CPU_MS, measured.CALL_MS, measured.FUNCTION_MB)


def archiving_seconds(records: int) -> float:
    rounds = math.ceil(records / _OVERLAPPING_FILES)
    cpu_ms = records * measured.PUBLISH_CPU_MS
    return invocation_seconds(cpu_ms, rounds * measured.FILE_CALL_MS, measured.FUNCTION_MB)


def run_seconds(profile: Profile) -> float:
    """Seconds of one batch of a worker. The calls and the handlers of its jobs overlap."""
    calls = measured.WORKER_CALLS + profile.limit * measured.LIMIT_CALLS + profile.group * measured.GROUP_WORKER_CALLS
    calls += profile.grouped * measured.GROUPED_READ_CALLS
    waiting_ms = calls * measured.CALL_MS + _payload_ms(profile) + profile.handler_ms
    cpu_ms = measured.GROUPED_WORK_CPU_MS if profile.grouped else measured.WORK_CPU_MS
    return invocation_seconds(profile.batch * cpu_ms, waiting_ms, profile.memory_mb)


def turn_seconds(profile: Profile) -> float:
    """Seconds of one job of a group, whose jobs run one after another: its calls, its CPU time and its handler."""
    calls = measured.WORKER_CALLS + profile.limit * measured.LIMIT_CALLS + measured.GROUP_WORKER_CALLS
    waiting_ms = calls * measured.CALL_MS + _payload_ms(profile) + profile.handler_ms
    return invocation_seconds(measured.WORK_CPU_MS, waiting_ms, profile.memory_mb)


def _payload_ms(profile: Profile) -> float:
    """To write or read a payload outside of the document."""
    if profile.inline:
        return 0
    return measured.FILE_CALL_MS if profile.in_file else measured.CALL_MS
