"""Writes the clicks of a link to a file, for the owner of the link: as many invocations as it takes, one file.

It holds the clicks up to the moment when it was asked for, as far as their records are there.
"""

from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from shortener import clock, composition, link_codes
from shortener.click_records import Format, header, lines
from shortener.click_table import RECORDS_KEPT
from shortener.multipart_upload import PartsLostError, Upload, Written
from shortener.names import Env
from tidemill import EXPORTS_PREFIX, CancelRequestedError, Continue, Lane, PermanentJobError, Run, job_type, setting

#: What one page, and putting away what is left over, may take before the run has to end.
LONGEST_STEP: Final = timedelta(seconds=1)
SHOWN_EVERY: Final = timedelta(seconds=2)


class Export(BaseModel):
    """Whose clicks, and as what."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(pattern=link_codes.PATTERN)
    format: Format = Format.CSV
    #: Clicks read at once: a thousand are a quarter of a megabyte.
    page: int = Field(default=1000, ge=1, le=1000)


@job_type("clicks.export", payload=Export, lane=Lane.BULK)
def clicks_export(export: Export, run: Run) -> dict[str, Any] | Continue:
    link = composition.links().get(export.code)
    if link is None or link.owner != run.tenant:
        # One answer for both, as the stats have it.
        raise PermanentJobError(f"no link of yours has the code {export.code}")
    try:
        return _carried_on(export, run, _upload(export, run))
    except PartsLostError:
        return Continue(Written().model_dump())


def _upload(export: Export, run: Run) -> Upload:
    return Upload(
        composition.s3(),
        bucket=setting(Env.EXPORTS_BUCKET),
        key=f"{EXPORTS_PREFIX}{run.job_id}.{export.format}",
        written=Written.model_validate(run.resumed_from or {}),
        save=lambda written: run.checkpoint(written.model_dump(), done=written.lines),
        new_token=lambda: uuid4().hex,
    )


def _carried_on(export: Export, run: Run, upload: Upload) -> dict[str, Any] | Continue:
    try:
        if not _all_written(export, run, upload):
            return Continue(upload.suspend().model_dump())
        upload.finish()
    except (CancelRequestedError, PermanentJobError):
        upload.abandon()
        raise
    return {
        "bucket": upload.bucket,
        "key": upload.key,
        "lines": upload.written.lines,
        "bytes": upload.written.bytes,
    }


def _all_written(export: Export, run: Run, upload: Upload) -> bool:
    """Write until it is time to go on in another invocation. True when there is nothing left to write."""
    if upload.written.after is None:
        run.checkpoint(done=0, total=_expected(export.code))
        upload.write(header(export.format), lines=0, after="")
    shown_at = clock.now()
    pages = composition.records().pages(
        export.code, until=run.submitted_at, after=upload.written.after, size=export.page, now=shown_at
    )
    for page in pages:
        upload.write(lines(page.clicks, export.format), lines=len(page.clicks), after=page.last)
        now = clock.now()
        if now + LONGEST_STEP >= run.deadline:
            return False
        if now >= shown_at + SHOWN_EVERY:
            run.checkpoint(done=upload.written.lines)
            shown_at = now
    run.checkpoint(done=upload.written.lines, total=upload.written.lines)
    return True


def _expected(code: str) -> int:
    """About how many lines there will be: the clicks of the days whose records are kept."""
    first_day = str((clock.now() - RECORDS_KEPT).date())
    return sum(count for day, count in composition.clicks().tally(code).days.items() if day >= first_day)
