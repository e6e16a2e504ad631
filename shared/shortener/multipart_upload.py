"""A file in S3 that is written across invocations. It holds each line exactly once, even if invocations crash.

S3 takes the parts of a large file one by one; each but the last has at least 5 MiB. At the end of an invocation, lines
that do not fill a part are saved in a separate object, the tail. An `UploadState` names the parts and the tail, which
stay unchanged until a newer state has been saved.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from botocore.exceptions import ClientError
from pydantic import BaseModel, Field

from tidemill import PermanentJobError, TidemillError
from tidemill.aws.clients import translated

#: At least 5 MiB: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html. A part is held in memory.
PART_BYTES: Final = 8 * 1024 * 1024
#: The ETags of the parts take most of a checkpoint, which may have 8 KiB.
MOST_PARTS: Final = 120

#: Error codes of S3 for a part, an upload or a tail that was removed or overwritten.
_LOST: Final = frozenset({"InvalidPart", "NoSuchUpload", "NoSuchKey"})


class PartsLostError(TidemillError):
    """A part or tail of an `UploadState` was removed or overwritten. The caller must restart the file."""


class UploadState(BaseModel):
    """The parts and the tail of an unfinished file, small enough for a checkpoint."""

    #: Without the heading.
    lines: int = 0
    bytes: int = 0
    #: The writer's own position after the last line.
    after: str | None = None
    #: S3's id of the upload; None until the first part is full.
    upload: str | None = None
    #: ETag and CRC-32 of each part, in order, as S3 requires them to complete the upload.
    parts: list[tuple[str, str]] = Field(default_factory=list)
    #: Key of the object with the lines that are not yet in a part.
    tail: str | None = None
    #: All lines are in parts, and the upload only has to be completed.
    whole: bool = False


class Upload:
    """Continues the file `key` from `state`. The tail of the previous state is deleted after `save` has returned.

    After an error, the caller retries from the state that was saved last.
    """

    def __init__(
        self,
        client: Any,
        *,
        bucket: str,
        key: str,
        state: UploadState,
        save: Callable[[UploadState], None],
        new_token: Callable[[], str],
    ) -> None:
        self._client = client
        self.bucket = bucket
        self.key = key
        self._save = save
        self._new_token = new_token
        self.state = state
        #: The tail that the saved state names.
        self._saved_tail = state.tail
        self._pending = self._load(state.tail) if state.tail else b""

    def write(self, data: bytes, *, lines: int, after: str) -> None:
        """Append whole lines. Sends a full part and saves the state."""
        self._pending += data
        self.state.bytes += len(data)
        self.state.lines += lines
        self.state.after = after
        if len(self._pending) >= PART_BYTES:
            self._send_part()
            self._saved()

    def suspend(self) -> UploadState:
        """Write the lines that are not in a part to a tail, and save the state."""
        if self._pending:
            # A new name: a stale run with an older state must not overwrite the tail of this state.
            self.state.tail = f"{self.key}.{self._new_token()}.tail"
            with _lost():
                self._client.put_object(Bucket=self.bucket, Key=self.state.tail, Body=self._pending)
        self._saved()
        return self.state

    def finish(self) -> None:
        """Publish the complete file under its key. May be repeated."""
        if self.state.upload is None:
            with _lost():
                self._client.put_object(Bucket=self.bucket, Key=self.key, Body=self._pending)
        else:
            self._complete(self.state.upload)
        self._delete_tail(self._saved_tail)

    def abort(self) -> None:
        """Delete the unfinished file. Best effort: the lifecycle rules of the bucket delete the rest."""
        with suppress(TidemillError), _lost():
            if self.state.upload:
                self._client.abort_multipart_upload(Bucket=self.bucket, Key=self.key, UploadId=self.state.upload)
            self._delete_tail(self._saved_tail)

    def _complete(self, upload: str) -> None:
        if not self.state.whole:
            if self._pending:
                self._send_part()
            self.state.whole = True
            self._saved()
        parts: Any = [
            {"PartNumber": number, "ETag": tag, "ChecksumCRC32": checksum}
            for number, (tag, checksum) in enumerate(self.state.parts, start=1)
        ]
        try:
            with _lost():
                self._client.complete_multipart_upload(
                    Bucket=self.bucket, Key=self.key, UploadId=upload, MultipartUpload={"Parts": parts}
                )
        except PartsLostError:
            # An earlier run may have completed the upload and crashed before it reported this.
            if self._size() != self.state.bytes:
                raise

    def _size(self) -> int | None:
        """Size of the file, or None without it. S3 answers 403 for a missing object to a role that may not list."""
        with suppress(ClientError), translated():
            size: int = self._client.head_object(Bucket=self.bucket, Key=self.key)["ContentLength"]
            return size
        return None

    def _send_part(self) -> None:
        if len(self.state.parts) == MOST_PARTS:
            raise PermanentJobError(
                f"the file exceeds the limit of {MOST_PARTS * PART_BYTES} bytes; it cannot be exported"
            )
        with _lost():
            if self.state.upload is None:
                # The checksums are sent again on completion, so S3 rejects a part that a stale run overwrote.
                answer = self._client.create_multipart_upload(
                    Bucket=self.bucket, Key=self.key, ChecksumAlgorithm="CRC32"
                )
                self.state.upload = answer["UploadId"]
            part = self._client.upload_part(
                Bucket=self.bucket,
                Key=self.key,
                UploadId=self.state.upload,
                PartNumber=len(self.state.parts) + 1,
                Body=self._pending,
                ChecksumAlgorithm="CRC32",
            )
        self.state.parts.append((part["ETag"].strip('"'), part["ChecksumCRC32"]))
        self._pending, self.state.tail = b"", None

    def _saved(self) -> None:
        self._save(self.state)
        if self._saved_tail != self.state.tail:
            self._delete_tail(self._saved_tail)
            self._saved_tail = self.state.tail

    def _load(self, tail: str) -> bytes:
        # S3 answers so for a missing object to a role that may not list.
        with _lost("AccessDenied"):
            data: bytes = self._client.get_object(Bucket=self.bucket, Key=tail)["Body"].read()
            return data

    def _delete_tail(self, tail: str | None) -> None:
        if tail:
            with _lost():
                self._client.delete_object(Bucket=self.bucket, Key=tail)


@contextmanager
def _lost(*hidden: str) -> Iterator[None]:
    """Raise `PartsLostError` for the errors in `_LOST` and `hidden`, and otherwise the errors of `translated`."""
    try:
        with translated():
            yield
    except ClientError as error:
        response: Mapping[str, Any] = error.response
        if response["Error"]["Code"] not in {*_LOST, *hidden}:
            raise
        raise PartsLostError(str(error)) from error
