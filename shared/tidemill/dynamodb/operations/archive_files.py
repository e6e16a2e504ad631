"""The files of the archive in a bucket: one file for each end of a job, partitioned by its date."""

import base64
import gzip
import json
from typing import Any, Final

from botocore.exceptions import ClientError

from tidemill.application.job_view import record
from tidemill.aws.clients import translated
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.time_constants import EPOCH, MILLISECOND
from tidemill.names import ARCHIVE_PREFIX

_EXISTS: Final = "PreconditionFailed"


class BucketArchive:
    """`ArchiveFiles`. `client` is an S3 client, and needs only `s3:PutObject` on the prefix."""

    def __init__(self, client: Any, *, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def write(self, job: Job) -> None:
        line = json.dumps(record(job), separators=(",", ":")).encode() + b"\n"
        try:
            with translated():
                self._client.put_object(
                    Bucket=self._bucket,
                    Key=archive_key(job),
                    # Without the time of compression, so that a repeat has the same bytes.
                    Body=gzip.compress(line, mtime=0),
                    ContentType="application/gzip",
                    # The record was delivered twice: with Object Lock, another version would be kept as well.
                    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
                    IfNoneMatch="*",
                )
        except ClientError as error:
            if error.response["Error"]["Code"] != _EXISTS:
                # Such as a missing right. The record comes again.
                raise StoreUnavailableError(str(error)) from error


def archive_key(job: Job) -> str:
    """Each end has its own: a redriven job ends again. At most 900 of the 1,024 bytes of a key."""
    tenant = base64.urlsafe_b64encode(job.tenant.encode()).decode().rstrip("=")
    ended = job.finished_at or job.created_at
    end = f"{(ended - EPOCH) // MILLISECOND}-{job.generation}-{job.state}"
    return f"{ARCHIVE_PREFIX}date={ended:%Y-%m-%d}/{tenant}/{job.id}/{end}.json.gz"
