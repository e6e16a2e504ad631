"""The S3 operations that large payloads and exports use."""

from typing import Any

from tests.simulation.conformance.case import BUCKET, Aws, code
from tests.simulation.conformance.citations import S3, S3_GUIDE, cites

FILE: Any = {"Bucket": BUCKET, "Key": "jobs/a.json"}


def content(aws: Aws) -> bytes:
    body: bytes = aws.s3.get_object(**FILE)["Body"].read()
    return body


@cites(
    S3,
    "Amazon S3 never adds partial objects; if you receive a success response, Amazon S3 added the entire object to the "
    "bucket.",
)
def test_an_object_is_read_as_it_was_put(aws: Aws) -> None:
    aws.s3.put_object(**FILE, Body=b"x" * 300_000, ContentType="application/json")
    assert content(aws) == b"x" * 300_000


@cites(
    S3_GUIDE + "Welcome.html",
    "Amazon S3 provides strong read-after-write consistency for PUT and DELETE requests of objects in your Amazon S3 "
    "bucket in all AWS Regions. This behavior applies to both writes to new objects as well as PUT requests that "
    "overwrite existing objects and DELETE requests.",
)
def test_a_read_sees_the_last_write(aws: Aws) -> None:
    for text in (b"first", b"second"):
        aws.s3.put_object(**FILE, Body=text)
        assert content(aws) == text
    aws.s3.delete_object(**FILE)
    assert code(lambda: aws.s3.get_object(**FILE)) == "NoSuchKey"


@cites(S3, "The specified key does not exist.")
def test_a_missing_object_raises_no_such_key(aws: Aws) -> None:
    assert code(lambda: aws.s3.get_object(**FILE)) == "NoSuchKey"


@cites(
    S3,
    "If bucket versioning is not enabled, the operation permanently deletes the object.",
)
def test_a_deletion_may_be_repeated(aws: Aws) -> None:
    aws.s3.put_object(**FILE, Body=b"x")
    for _ in range(2):
        aws.s3.delete_object(**FILE)
    assert code(lambda: aws.s3.get_object(**FILE)) == "NoSuchKey"


@cites(S3, "Size of the body in bytes.")
def test_an_object_has_a_content_length(aws: Aws) -> None:
    aws.s3.put_object(**FILE, Body=b"12345")
    assert aws.s3.get_object(**FILE)["ContentLength"] == 5
