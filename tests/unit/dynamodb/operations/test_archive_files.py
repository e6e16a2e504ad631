"""The file of each end of a job: its name, its bytes, and what an error of the bucket means."""

import gzip
import json
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import NOW, a_job
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.operations.archive_files import BucketArchive, archive_key

ENDED = a_job(
    tenant="111122223333:ops/ada", id="a", state=State.SUCCEEDED, due=None, generation=3, finished_at=NOW, result="{}"
)


class Bucket:
    """Notes each file. With a code, it refuses each."""

    def __init__(self, code: str = "") -> None:
        self._code = code
        self.files: list[dict[str, Any]] = []

    def put_object(self, **request: Any) -> None:
        if self._code:
            raise ClientError({"Error": {"Code": self._code, "Message": "no"}}, "PutObject")
        self.files.append(request)


def written(job: Job) -> dict[str, Any]:
    bucket = Bucket()
    BucketArchive(bucket, bucket="archive").write(job)
    (file,) = bucket.files
    return file


def test_a_file_holds_one_line_and_replaces_no_other() -> None:
    file = written(ENDED)

    assert (file["Bucket"], file["Key"], file["IfNoneMatch"]) == ("archive", archive_key(ENDED), "*")
    assert file["ContentType"] == "application/gzip"
    (line,) = gzip.decompress(file["Body"]).decode().splitlines()
    assert json.loads(line)["id"] == "a"
    assert file["Body"] == written(ENDED)["Body"], "a record that comes twice has the same bytes"


def test_each_end_of_a_job_has_a_name_of_its_own_on_the_day_of_the_end() -> None:
    milliseconds = round(NOW.timestamp() * 1000)
    later = NOW + timedelta(days=1)

    assert archive_key(ENDED) == (
        f"jobs/date=2045-03-04/MTExMTIyMjIzMzMzOm9wcy9hZGE/a/{milliseconds}-3-succeeded.json.gz"
    )
    assert archive_key(replace(ENDED, finished_at=later)).startswith("jobs/date=2045-03-05/")
    assert archive_key(replace(ENDED, finished_at=None, created_at=later)).startswith("jobs/date=2045-03-05/")
    ends = [ENDED, replace(ENDED, generation=4), replace(ENDED, state=State.DEAD), replace(ENDED, finished_at=later)]
    assert len({archive_key(job) for job in ends}) == len(ends)


def test_a_file_that_is_there_already_is_a_success() -> None:
    BucketArchive(Bucket("PreconditionFailed"), bucket="archive").write(ENDED)


@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchKey", "ServiceUnavailable"])
def test_any_other_error_lets_the_record_come_again(code: str) -> None:
    with pytest.raises(StoreUnavailableError):
        BucketArchive(Bucket(code), bucket="archive").write(ENDED)
