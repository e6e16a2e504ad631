"""Submitting jobs from Python: in a function of the app, or in any program that may write to the jobs table.

tidemill = Tidemill.here(tenant="billing")
tidemill.submit(Submission(type="mail.welcome", payload={"address": "ada@example.com"}, key="user-7"))
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from tidemill import composition
from tidemill.application.ports import Payloads
from tidemill.application.submit import Accepted, Submit
from tidemill.application.submit_batch import Answer, submit_all
from tidemill.application.validation import LONGEST_TENANT, is_tenant
from tidemill.aws import clients
from tidemill.domain.errors import Fault, InvalidPayloadError, TidemillError
from tidemill.domain.outcomes import TransactWrite
from tidemill.domain.submission import Submission, Unique
from tidemill.dynamodb import job_writes
from tidemill.dynamodb.document import split_key
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.dynamodb.transactions import own
from tidemill.names import Env, Lane
from tidemill.settings import setting
from tidemill.system import clock, job_type_loader

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

__all__ = ["Accepted", "Answer", "Lane", "Submission", "TenantError", "Tidemill", "Unique", "job_id_of"]

#: Whoever only submits ends no job, so how long ended ones are kept is none of its business.
_NO_RETENTION: Final = timedelta(0)


class TenantError(TidemillError):
    """A name under which no job can be filed."""


class NoBucketError(TidemillError):
    """A payload is so large that it has to be a file, and nobody said where files are."""


class Tidemill:
    """Submits jobs for one tenant, and checks them exactly as the HTTP API does. Threads may share one.

    The tenant is whose jobs they are: over HTTP that is the verified caller, and here whoever calls is trusted. Another
    tenant sees none of them.
    """

    def __init__(
        self, submit: Submit, payloads: Payloads, *, tenant: str, table: str, listed: bool, overlap: int
    ) -> None:
        """For `here` and `at`."""
        if not is_tenant(tenant):
            rule = f"a tenant is 1 to {LONGEST_TENANT} visible ASCII characters, and the first is no '!'"
            raise TenantError(f"{rule}; got {tenant!r}")
        self._submit = submit
        self._payloads = payloads
        self._tenant = tenant
        self._table = table
        self._listed = listed
        self._overlap = overlap

    @classmethod
    def here(cls, *, tenant: str) -> "Tidemill":
        """In a function of the app, whose environment says where everything is."""
        return cls(
            composition.submit(),
            composition.payloads(),
            tenant=tenant,
            table=setting(Env.JOBS_TABLE),
            listed=bool(setting(Env.LISTING)),
            overlap=clients.POOL_SIZE,
        )

    @classmethod
    def at(
        cls,
        table: str,
        *,
        tenant: str,
        job_packages: Sequence[str],
        client: "DynamoDBClient",
        files: tuple[Any, str] | None = None,
        listed: bool = True,
    ) -> "Tidemill":
        """In any program.

        `client` is a low-level DynamoDB client, and `job_packages` are those that hold the job types. `files` is an S3
        client and the name of the files bucket; without it, a payload of more than 64 KiB is refused. `listed` is
        whether the stage lists jobs.
        """

        def bucket() -> Bucket:
            if files is None:
                raise NoBucketError("a payload of this size becomes a file; name the bucket with files=(client, name)")
            return Bucket(*files)

        store = DynamoJobStore(client, table=table, retention=_NO_RETENTION, listed=listed)
        payloads = DynamoPayloads(client, table=table, bucket=bucket, new_token=clock.new_token)
        submit = Submit(
            store=store,
            payloads=payloads,
            job_types=job_type_loader.load(job_packages),
            clock=clock.now,
            new_id=clock.new_job_id,
        )
        overlap: int = client.meta.config.max_pool_connections  # type: ignore[attr-defined]  # the stubs leave it out
        return cls(submit, payloads, tenant=tenant, table=table, listed=listed, overlap=overlap)

    def submit(self, submission: Submission) -> Accepted:
        """One conditional write; `replayed` when the job was there already.

        Raises `UnknownJobTypeError`, `InvalidPayloadError` with the path of each fault, `PayloadTooLargeError` or
        `KeyReusedError`, and leaves nothing behind. After `StoreUnavailableError` or `TransactionConflictError` submit
        the same again: with a key or `unique`, it makes no second job.
        """
        return self._submit(submission, tenant=self._tenant, trace=clock.new_token())

    def submit_many(self, submissions: Sequence[Submission]) -> list[Answer]:
        """An answer each, in their order: what `submit` would return, or what it would raise.

        As many are written at the same time as the client has connections; those of one group in their order.
        """
        return submit_all(
            self._submit, submissions, tenant=self._tenant, trace=clock.new_token(), overlap=self._overlap
        )

    def submission_item(self, submission: Submission) -> TransactWrite:
        """An entry for a `TransactWriteItems` of your own: your writes and the job commit together or not at all.

        Use it at once and once. Its condition fails when the job is there already, of the same key or `unique`; the
        transaction before this one has committed then. Raises what `submit` raises of a submission that is not right.
        """
        if submission.group is not None:
            message = "a job of a group enters it by a transaction of its own; submit it, or leave the group out here"
            raise InvalidPayloadError([Fault("/group", message)])
        job = self._submit.prepare(submission, tenant=self._tenant, trace=clock.new_token())
        # Before the transaction: one that never comes leaves a payload that belongs to no job, which reconcile deletes.
        stored = self._payloads.put_away(job)
        return own("Put", job_writes.insert(stored, listed=self._listed), table=self._table).write


def job_id_of(item: TransactWrite) -> str:
    """The id of the job that a `submission_item` makes."""
    return split_key(item["Put"]["Item"])[1]
