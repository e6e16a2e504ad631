"""Writes the clicks of a link to one file for its owner, over as many invocations as necessary.

The file holds the clicks up to the submission of the job. It lacks the clicks whose records have expired.
"""

from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field

from shortener import clock, composition, link_codes
from shortener.click_records import Format, header, lines
from shortener.click_table import RECORDS_KEPT
from shortener.multipart_upload import PartsLostError, Upload, UploadState
from shortener.names import Env
from tidemill import EXPORTS_PREFIX, CancelRequestedError, Continue, Lane, PermanentJobError, Run, job_type, setting

#: Upper bound of the time for one page and for saving the tail. The run stops this long before its deadline.
LONGEST_STEP: Final = timedelta(seconds=1)
PROGRESS_EVERY: Final = timedelta(seconds=2)


class Export(BaseModel):
    """The link whose clicks to export, and the format."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(pattern=link_codes.PATTERN)
    format: Format = Format.CSV
    #: Clicks in one read. A thousand are a quarter of a megabyte.
    page: int = Field(default=1000, ge=1, le=1000)


@job_type("clicks.export", payload=Export, lane=Lane.BULK)
def clicks_export(export: Export, run: Run) -> dict[str, Any] | Continue:
    link = composition.links().get(export.code)
    if link is None or link.owner != run.tenant:
        # The same error for both, as in the statistics: it does not reveal the links of other tenants.
        raise PermanentJobError(f"no link of yours has the code {export.code}")
    try:
        return _export(export, run, _upload(export, run))
    except PartsLostError:
        return Continue(UploadState().model_dump())


def _upload(export: Export, run: Run) -> Upload:
    return Upload(
        composition.s3(),
        bucket=setting(Env.EXPORTS_BUCKET),
        key=f"{EXPORTS_PREFIX}{run.job_id}.{export.format}",
        state=UploadState.model_validate(run.resumed_from or {}),
        save=lambda state: run.checkpoint(state.model_dump(), done=state.lines),
        new_token=lambda: uuid4().hex,
    )


def _export(export: Export, run: Run, upload: Upload) -> dict[str, Any] | Continue:
    try:
        if not _write_pages(export, run, upload):
            return Continue(upload.suspend().model_dump())
        upload.finish()
    except (CancelRequestedError, PermanentJobError):
        upload.abort()
        raise
    return {
        "bucket": upload.bucket,
        "key": upload.key,
        "lines": upload.state.lines,
        "bytes": upload.state.bytes,
    }


def _write_pages(export: Export, run: Run, upload: Upload) -> bool:
    """Write pages. Returns True after the last page, and False if the rest needs another invocation."""
    if upload.state.after is None:
        run.checkpoint(done=0, total=_expected(export.code))
        upload.write(header(export.format), lines=0, after="")
    reported_at = clock.now()
    pages = composition.records().pages(
        export.code, until=run.submitted_at, after=upload.state.after, size=export.page, now=reported_at
    )
    for page in pages:
        upload.write(lines(page.clicks, export.format), lines=len(page.clicks), after=page.last)
        now = clock.now()
        if now + LONGEST_STEP >= run.deadline:
            return False
        if now >= reported_at + PROGRESS_EVERY:
            run.checkpoint(done=upload.state.lines)
            reported_at = now
    run.checkpoint(done=upload.state.lines, total=upload.state.lines)
    return True


def _expected(code: str) -> int:
    """Estimated number of lines: the clicks of the days whose records are kept."""
    first_day = str((clock.now() - RECORDS_KEPT).date())
    return sum(count for day, count in composition.clicks().tally(code).days.items() if day >= first_day)
