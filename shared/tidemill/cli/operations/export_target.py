"""Where an export goes: a new file, or a new object of a bucket. It appears there whole, or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import click
from botocore.exceptions import ClientError

from tidemill.aws import clients
from tidemill.aws.clients import translated
from tidemill.cli.errors import CommandError
from tidemill.domain.errors import MissingResourceError
from tidemill.system import ids

_BUCKET_SCHEME: Final = "s3://"
#: The most bytes of one PutObject, 5 GB: https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html
_LARGEST_OBJECT_BYTES: Final = 5 * 10**9
_TOKEN: Final = "tidemill-export"  # noqa: S105 - the name of a metadata entry
#: S3 answers so if the key exists, or if another request writes it now:
#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
_REFUSED: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})


@dataclass(frozen=True, slots=True)
class FileTarget:
    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Yield a temporary file, which gets the name of the target when the block ends without an error.

        Only its owner may read it: it may hold payloads.
        """
        if self.path.exists():
            raise _exists(self.name)
        with _temporary_file(self.path.parent) as file:
            self._require_links(file.name)
            yield file
            file.flush()
            os.fsync(file.fileno())
            try:
                # Not renamed: that would replace a file that came meanwhile.
                os.link(file.name, self.path)
            except FileExistsError as error:
                raise _exists(self.name) from error

    def _require_links(self, temporary: str) -> None:
        """Before the scan of a table, which may take hours."""
        probe = Path(f"{temporary}.link")
        try:
            os.link(temporary, probe)
        except OSError as error:
            raise CommandError(
                f"the file system of {self.path.parent} has no hard links, by which an export gets its name",
                remedy="Export to another folder, or to S3.",
            ) from error
        probe.unlink()


@dataclass(frozen=True, slots=True)
class ObjectTarget:
    bucket: str
    key: str

    @property
    def name(self) -> str:
        return f"{_BUCKET_SCHEME}{self.bucket}/{self.key}"

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """Yield a temporary file, which is uploaded when the block ends without an error."""
        self._require_new()
        with _temporary_file(Path(tempfile.gettempdir())) as file:
            yield file
            file.flush()
            if file.tell() > _LARGEST_OBJECT_BYTES:
                raise CommandError(
                    "the export is larger than 5 GB, the most that S3 takes in one request",
                    remedy="Export to a file, or choose fewer jobs, such as those of one day.",
                )
            file.seek(0)
            self._put(file)

    def _require_new(self) -> None:
        """Before the scan of a table, which may take hours. Whether you may write shows only when you do."""
        try:
            with translated():
                # The answer to `head_object` has no code: a missing bucket would look like a missing key.
                clients.s3_uploads().get_object(Bucket=self.bucket, Key=self.key)["Body"].close()
        except MissingResourceError as error:
            raise CommandError(
                f"the bucket {self.bucket} does not exist", remedy="Correct --to, or create the bucket."
            ) from error
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "AccessDenied":
                raise CommandError(
                    f"you may not read {self.name}, nor whether it exists",
                    remedy="Choose another target with --to, or ask for s3:GetObject and s3:PutObject on the object "
                    "and s3:ListBucket on its bucket.",
                ) from error
            if code != "NoSuchKey":
                raise
        else:
            raise _exists(self.name)

    def _put(self, file: IO[bytes]) -> None:
        token = ids.new_token()
        try:
            with translated():
                clients.s3_uploads().put_object(
                    Bucket=self.bucket,
                    Key=self.key,
                    Body=file,
                    ContentType="application/jsonl",
                    Metadata={_TOKEN: token},
                    # The key exists: an export replaces no object.
                    IfNoneMatch="*",
                )
        except ClientError as error:
            if error.response["Error"]["Code"] not in _REFUSED:
                raise
            # The SDK repeats a request whose answer was lost. Then the object has this token.
            if self._token() != token:
                raise _exists(self.name) from error

    def _token(self) -> str | None:
        with translated():
            found: Any = clients.s3_uploads().head_object(Bucket=self.bucket, Key=self.key)
        token: str | None = found["Metadata"].get(_TOKEN)
        return token


class _Target(click.ParamType[FileTarget | ObjectTarget]):
    name = "target"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> FileTarget | ObjectTarget:
        if value in {"", "-"}:
            self.fail(
                f"invalid target {value!r}: name a file, or s3://BUCKET/KEY; an export never goes to stdout", param, ctx
            )
        if not value.lower().startswith(_BUCKET_SCHEME):
            path = Path(value)
            if not path.parent.is_dir():
                self.fail(f"the folder {path.parent} does not exist: create it, or name another file", param, ctx)
            return FileTarget(path)
        if not value.startswith(_BUCKET_SCHEME):
            self.fail(f"invalid object {value!r}: write {_BUCKET_SCHEME} in lower case", param, ctx)
        bucket, _, key = value.removeprefix(_BUCKET_SCHEME).partition("/")
        if not bucket or not key or key.endswith("/"):
            self.fail(f"invalid object {value!r}: use s3://BUCKET/KEY", param, ctx)
        return ObjectTarget(bucket, key)


TARGET: Final = _Target()


def _exists(name: str) -> CommandError:
    return CommandError(f"{name} exists", remedy="Choose another name. An export replaces nothing.")


@contextmanager
def _temporary_file(folder: Path) -> Iterator[IO[bytes]]:
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".tidemill-export-") as file:
        yield file
