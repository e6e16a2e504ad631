"""What one job of a profile uses of AWS: the arithmetic of the protocol over what was measured.

`tests/integration/test_benchmark_counts.py` compares its writes, reads and units with those that the benchmark counts.
"""

import math
from dataclasses import replace
from typing import Any, Final

from tidemill.cost import durations, measured
from tidemill.cost.bill import Usage
from tidemill.cost.list_prices import GIGABYTE
from tidemill.cost.profile import Profile
from tidemill.domain.admission.quotas import LARGEST_COUNT
from tidemill.dynamodb.history_entries import WRITE_UNIT_BYTES

READ_UNIT_BYTES: Final = 4096
DAYS_PER_MONTH: Final = 365 / 12
DAY_SECONDS: Final = 24 * 60 * 60
#: Receive and delete, which Lambda makes for each batch.
_CALLS_OF_MAPPING: Final = 2
#: The most messages of one `SendMessageBatch`.
_MESSAGES_PER_REQUEST: Final = 10
#: The API counts a larger request as several: https://aws.amazon.com/api-gateway/pricing/
_API_REQUEST_BYTES: Final = 512 * 1024


def of_one_job(profile: Profile) -> Usage:
    """Usage of the average job: a job with 1.2 attempts has two runs in one case of five."""
    return _submission(profile) + _publication(profile) + _runs(profile) + _payload(profile) + _kept(profile)


def of_one_request(profile: Profile) -> Usage:
    """Usage of a request to the API and its function, without what it writes for each job."""
    jobs = profile.per_request
    request = _invocation(durations.submission_seconds(profile), measured.FUNCTION_MB)
    request += Usage(api_requests=math.ceil(jobs * profile.payload_bytes / _API_REQUEST_BYTES))
    if profile.first_message:
        request += Usage(fair_requests=math.ceil(jobs / _MESSAGES_PER_REQUEST))
    return request


def of_waiting_job(profile: Profile) -> Usage:
    """Usage of a job before its first run, without its request: its insert, its message, and its storage."""
    waiting = replace(profile, per_request=0, attempts=1.0, archive=False)
    return _submission(waiting) + _publication(waiting) + _payload(waiting) + _kept(waiting)


def write_units(size_bytes: float) -> int:
    return max(1, math.ceil(size_bytes / WRITE_UNIT_BYTES))


def _submission(profile: Profile) -> Usage:
    """The insert, behind the API or in a function of the app, whose own time is not counted."""
    units = write_units(_document_bytes(profile))
    if profile.group:
        units *= 2  # the insert is part of a transaction
    written = Usage(write_units=units + profile.listing, log_bytes=_sampled(profile, measured.ACCEPTED_LINE_BYTES))
    if not profile.per_request:
        return written
    return written + of_one_request(profile).times(1 / profile.per_request)


def _publication(profile: Profile) -> Usage:
    """One message for each run. A batch takes one call, and one more for each ten messages."""
    one = _invocation(durations.publication_seconds(profile.batch), measured.FUNCTION_MB) + Usage(fair_requests=1)
    lines = Usage(log_bytes=_sampled(profile, measured.DISPATCHED_LINE_BYTES))
    if profile.first_message and profile.per_request:
        lines += Usage(read_units=measured.BEGUN_READ_UNITS)
    published = (one.times(1 / profile.batch) + lines).times(profile.attempts)
    if not profile.archive:
        return published
    # The stream's second reader. S3 takes one file for each job that ends.
    written = _invocation(durations.archiving_seconds(profile.batch), measured.FUNCTION_MB)
    return published + written.times(1 / profile.batch) + Usage(file_writes=1)


def _runs(profile: Profile) -> Usage:
    units = write_units(_document_bytes(profile)) + write_units(_document_bytes(profile) + profile.result_bytes)
    once = Usage(write_units=units, log_bytes=measured.RUN_LINES_BYTES)
    failed = Usage(write_units=measured.FAILED_RUN_WRITE_UNITS, log_bytes=measured.FAILED_RUN_LINES_BYTES)
    each = Usage(fair_requests=_CALLS_OF_MAPPING / profile.batch)
    if profile.limit:
        each += Usage(write_units=measured.LIMIT_WRITE_UNITS)
    if profile.grouped:
        once += Usage(read_units=math.ceil(_document_bytes(profile) / READ_UNIT_BYTES))
    if profile.group:
        once += Usage(write_units=measured.GROUP_WRITE_UNITS, read_units=measured.GROUP_READ_UNITS)
    if profile.in_file:
        each += Usage(file_reads=1)
    elif not profile.inline:
        each += Usage(read_units=math.ceil(_payload_item_bytes(profile) / READ_UNIT_BYTES))
    batch = _invocation(durations.run_seconds(profile), profile.memory_mb)
    each += batch.times(1 / profile.batch)
    return once + each.times(profile.attempts) + failed.times(profile.attempts - 1)


def _payload(profile: Profile) -> Usage:
    """A payload outside of the document is written once, and deleted with its job."""
    if profile.inline:
        return Usage()
    if profile.in_file:
        return Usage(file_writes=1)
    return Usage(write_units=2 * write_units(_payload_item_bytes(profile)))


def _kept(profile: Profile) -> Usage:
    months = profile.retention_days / DAYS_PER_MONTH
    table_bytes: float = _document_bytes(profile) + profile.result_bytes + measured.STORAGE_OVERHEAD_BYTES
    if profile.listing:
        table_bytes += measured.INDEX_ENTRY_BYTES + measured.STORAGE_OVERHEAD_BYTES
    if not profile.inline and not profile.in_file:
        table_bytes += _payload_item_bytes(profile) + measured.STORAGE_OVERHEAD_BYTES
    return Usage(
        table_gigabyte_months=table_bytes * months / GIGABYTE,
        backup_gigabyte_months=table_bytes * months / GIGABYTE if profile.point_in_time_recovery else 0,
        file_gigabyte_months=profile.payload_bytes * months / GIGABYTE if profile.in_file else 0,
    )


def with_log_storage(usage: Usage, log_retention_days: float) -> Usage:
    """CloudWatch compresses what it stores, by a factor that depends on the lines; none is assumed here."""
    months = log_retention_days / DAYS_PER_MONTH
    return usage + Usage(log_gigabyte_months=usage.log_bytes * months / GIGABYTE)


def _document_bytes(profile: Profile) -> int:
    return measured.DOCUMENT_BYTES + (profile.payload_bytes if profile.inline else 0)


def _payload_item_bytes(profile: Profile) -> float:
    return profile.stored_bytes + measured.PAYLOAD_KEY_BYTES


def _sampled(profile: Profile, line_bytes: int) -> float:
    return profile.log_sample_rate * line_bytes


def _invocation(seconds: float, memory_mb: int) -> Usage:
    return Usage(invocations=1, gigabyte_seconds=seconds * memory_mb / 1024, log_bytes=measured.PLATFORM_LINES_BYTES)


def daily_quota(dollars_a_day: float, *, dollars_per_job: float) -> dict[str, Any]:
    """The value of `quotas.TENANT` of the runtime configuration, for jobs like those of the profile."""
    return {"count": min(int(dollars_a_day / dollars_per_job), LARGEST_COUNT), "period_seconds": DAY_SECONDS}
