"""A file in S3 that is written across invocations, and never holds a line twice or lacks one, whoever dies when.

S3 takes the parts of a large file one by one, each of at least 5 MiB but the last. What is left over when an invocation
ends waits in an object of its own, the tail. A `Written` says what the file consists of so far; until a newer one has
been saved, nothing that it names is deleted or written over.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from botocore.exceptions import ClientError
from pydantic import BaseModel, Field

from tidemill import PermanentJobError, TidemillError
from tidemill.aws.clients import translated

#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html: at least 5 MiB. It is held in memory.
PART_BYTES: Final = 8 * 1024 * 1024
#: Their tags are what makes a checkpoint long, which may have 8 KiB.
MOST_PARTS: Final = 120

#: What S3 says when a part, an upload or a tail is no longer what it was.
_LOST: Final = frozenset({"InvalidPart", "NoSuchUpload", "NoSuchKey"})


class PartsLostError(TidemillError):
    """What `Written` names is not there any more, or was written over. The file has to be begun anew."""


class Written(BaseModel):
    """What a file consists of so far, small enough for a checkpoint."""

    #: A heading is none.
    lines: int = 0
    bytes: int = 0
    #: Whatever the writer needs to go on behind the last line.
    after: str | None = None
    #: S3's id of the upload, once the first part is full.
    upload: str | None = None
    #: ETag and CRC-32 of each part in its order, as S3 wants them back.
    parts: list[tuple[str, str]] = Field(default_factory=list)
    #: Key of the object with the lines that are in no part yet.
    tail: str | None = None
    #: All lines are in parts, and nothing is left but to have S3 join them.
    whole: bool = False


class Upload:
    """The file `key`, from where `written` left it. `save` saves its argument: only then what it replaces goes.

    What fails is for the caller to try again from what was saved last.
    """

    def __init__(
        self,
        client: Any,
        *,
        bucket: str,
        key: str,
        written: Written,
        save: Callable[[Written], None],
        new_token: Callable[[], str],
    ) -> None:
        self._client = client
        self.bucket = bucket
        self.key = key
        self._save = save
        self._new_token = new_token
        self.written = written
        #: The tail that the saved state names.
        self._saved_tail = written.tail
        self._pending = self._load(written.tail) if written.tail else b""

    def write(self, data: bytes, *, lines: int, after: str) -> None:
        """Append whole lines. Saves when a part is full."""
        self._pending += data
        self.written.bytes += len(data)
        self.written.lines += lines
        self.written.after = after
        if len(self._pending) >= PART_BYTES:
            self._send_part()
            self._saved()

    def suspend(self) -> Written:
        """Put what is left over into a tail, and save."""
        if self._pending:
            # A name of its own: whoever still runs with an older state must not change what this one names.
            self.written.tail = f"{self.key}.{self._new_token()}.tail"
            with _lost():
                self._client.put_object(Bucket=self.bucket, Key=self.written.tail, Body=self._pending)
        self._saved()
        return self.written

    def finish(self) -> None:
        """Have the file appear under its key, whole. May be repeated."""
        if self.written.upload is None:
            with _lost():
                self._client.put_object(Bucket=self.bucket, Key=self.key, Body=self._pending)
        else:
            self._join(self.written.upload)
        self._delete_tail(self._saved_tail)

    def abandon(self) -> None:
        """Remove what there is of the file. What cannot be removed goes by the bucket's own rules."""
        with suppress(TidemillError), _lost():
            if self.written.upload:
                self._client.abort_multipart_upload(Bucket=self.bucket, Key=self.key, UploadId=self.written.upload)
            self._delete_tail(self._saved_tail)

    def _join(self, upload: str) -> None:
        if not self.written.whole:
            if self._pending:
                self._send_part()
            self.written.whole = True
            self._saved()
        parts: Any = [
            {"PartNumber": number, "ETag": tag, "ChecksumCRC32": checksum}
            for number, (tag, checksum) in enumerate(self.written.parts, start=1)
        ]
        try:
            with _lost():
                self._client.complete_multipart_upload(
                    Bucket=self.bucket, Key=self.key, UploadId=upload, MultipartUpload={"Parts": parts}
                )
        except PartsLostError:
            # An earlier run may have joined them and died before it could say so.
            if self._size() != self.written.bytes:
                raise

    def _size(self) -> int | None:
        """Of the file that is there. Whoever may not list a bucket is told 403 of what is not."""
        with suppress(ClientError), translated():
            size: int = self._client.head_object(Bucket=self.bucket, Key=self.key)["ContentLength"]
            return size
        return None

    def _send_part(self) -> None:
        if len(self.written.parts) == MOST_PARTS:
            raise PermanentJobError(
                f"the file would be larger than {MOST_PARTS * PART_BYTES} bytes, the most it may be"
            )
        with _lost():
            if self.written.upload is None:
                # A tag for each part, given back when they are joined, tells of a part that somebody wrote over.
                answer = self._client.create_multipart_upload(
                    Bucket=self.bucket, Key=self.key, ChecksumAlgorithm="CRC32"
                )
                self.written.upload = answer["UploadId"]
            part = self._client.upload_part(
                Bucket=self.bucket,
                Key=self.key,
                UploadId=self.written.upload,
                PartNumber=len(self.written.parts) + 1,
                Body=self._pending,
                ChecksumAlgorithm="CRC32",
            )
        self.written.parts.append((part["ETag"].strip('"'), part["ChecksumCRC32"]))
        self._pending, self.written.tail = b"", None

    def _saved(self) -> None:
        self._save(self.written)
        if self._saved_tail != self.written.tail:
            self._delete_tail(self._saved_tail)
            self._saved_tail = self.written.tail

    def _load(self, tail: str) -> bytes:
        with _lost():
            data: bytes = self._client.get_object(Bucket=self.bucket, Key=tail)["Body"].read()
            return data

    def _delete_tail(self, tail: str | None) -> None:
        if tail:
            with _lost():
                self._client.delete_object(Bucket=self.bucket, Key=tail)


@contextmanager
def _lost() -> Iterator[None]:
    """Raise `PartsLostError` for what is gone, and what `translated` raises."""
    try:
        with translated():
            yield
    except ClientError as error:
        response: Mapping[str, Any] = error.response
        if response["Error"]["Code"] not in _LOST:
            raise
        raise PartsLostError(str(error)) from error
