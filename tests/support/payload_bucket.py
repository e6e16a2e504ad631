"""The bucket of the largest payloads, and payloads of an exact size."""

from tests.support import job_tables
from tests.support.job_tables import Table


class PayloadBucket:
    """A bucket of one test, on the same backend as its table."""

    def __init__(self, table: Table) -> None:
        endpoint = table.client.meta.endpoint_url
        self.client = job_tables.client("s3", endpoint if endpoint.startswith("http://127.0.0.1:") else None)
        self.name = f"files-of-{table.name}"
        self.client.create_bucket(Bucket=self.name, CreateBucketConfiguration={"LocationConstraint": job_tables.REGION})

    def keys(self) -> list[str]:
        return [each["Key"] for each in self.client.list_objects_v2(Bucket=self.name).get("Contents", [])]


def payload_of(size_bytes: int) -> str:
    """A JSON object of exactly this many bytes, at least 8."""
    return f'{{"a":"{"x" * (size_bytes - 8)}"}}'
