"""Submit jobs from Python: in a function of the app, or in any program that may write to the jobs table.

tidemill = Tidemill.here(tenant="billing")
tidemill.submit(Submission(type="mail.welcome", payload={"address": "ada@example.com"}, key="user-7"))

This module does not import aws-lambda-powertools.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tidemill.application.batches.batches import cancel_batch, close_batch, open_batch
from tidemill.application.events.events import publish
from tidemill.application.flows.flows import start_flow
from tidemill.application.job_types import JobTypes
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit_batch import Answer, submit_all
from tidemill.aws import clients
from tidemill.domain import option_values
from tidemill.domain.attempt.effects import TransactWrite
from tidemill.domain.batches.batches import Batch
from tidemill.domain.errors import (
    BatchRefusedError,
    Fault,
    FlowRefusedError,
    InvalidPayloadError,
    SignalRefusedError,
    SupersedeRefusedError,
    TidemillError,
    UndoRefusedError,
)
from tidemill.domain.events.events import Event
from tidemill.domain.flows.flows import Edge, Flow, Node, OnFailure
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.domain.submission.tenants import LONGEST_TENANT, is_tenant
from tidemill.domain.submission.trace_context import from_traceparent, trace_of, traceparent_of
from tidemill.domain.time_constants import EPOCH, JOB_RETENTION_DAYS
from tidemill.dynamodb import job_writes
from tidemill.dynamodb.batches.listed_members import has_members
from tidemill.dynamodb.document import split_key
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.listing import Wanted
from tidemill.dynamodb.payloads import Bucket
from tidemill.dynamodb.transactions import own
from tidemill.names import BATCH_PACKAGE, EVENT_PACKAGE, FLOW_PACKAGE, INDEX_SHARDS, Env, Lane
from tidemill.parts import Parts
from tidemill.settings import setting
from tidemill.system import clock, ids, job_type_loader
from tidemill.system.current_span import current_traceparent

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


__all__ = [
    "Accepted",
    "Answer",
    "Batch",
    "BatchRefusedError",
    "Edge",
    "Event",
    "Flow",
    "FlowRefusedError",
    "Lane",
    "Node",
    "OnFailure",
    "SignalRefusedError",
    "Submission",
    "SupersedeRefusedError",
    "TenantError",
    "Tidemill",
    "UndoRefusedError",
    "Unique",
    "job_id_of",
]


class TenantError(TidemillError):
    """The name is not valid as a tenant."""


class NoBucketError(TidemillError):
    """The payload is so large that it must be a file, and this client has no files bucket."""


class _ClientParts(Parts):
    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        table: str,
        retention: timedelta,
        indexes: Indexes,
        job_types: JobTypes,
        bucket: Callable[[], Bucket],
    ) -> None:
        self.client = client
        self.table = table
        self.retention = retention
        self.indexes = indexes
        self.job_types = job_types
        self._bucket = bucket

    def bucket(self) -> Bucket:
        return self._bucket()


class Tidemill:
    """Submits jobs for one tenant, with the same checks as the HTTP API. Threads may share one.

    The tenant owns the jobs, and other tenants cannot see them. Over HTTP the tenant is the verified caller. Here it is
    the name that this program gives.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        table: str,
        tenant: str,
        job_packages: Sequence[str],
        bucket: Callable[[], Bucket],
        indexes: Indexes,
        retention: timedelta,
    ) -> None:
        """Use `here` or `at`."""
        if not is_tenant(tenant):
            rule = f"use 1 to {LONGEST_TENANT} visible ASCII characters, and do not start with '!'"
            raise TenantError(f"invalid tenant {tenant!r}: {rule}")
        self._parts = _ClientParts(
            client,
            table=table,
            retention=retention,
            indexes=indexes,
            job_types=_sound_job_types(job_packages),
            bucket=bucket,
        )
        self._tenant = tenant
        self._overlap: int = client.meta.config.max_pool_connections  # type: ignore[attr-defined]  # not in the stubs

    @classmethod
    def here(cls, *, tenant: str) -> "Tidemill":
        """In a function of the app: reads the names of the table, the bucket and the job types from its environment.

        It imports the job types, so build one client per process and keep it. Raises `SettingError`.
        """
        return cls(
            clients.dynamodb(),
            table=setting(Env.JOBS_TABLE),
            tenant=tenant,
            job_packages=setting(Env.JOB_PACKAGES).split(","),
            # The first payload that must be a file needs the bucket. A function without such payloads does not.
            bucket=lambda: Bucket(clients.s3(), setting(Env.FILES_BUCKET)),
            indexes=Indexes(listed=bool(setting(Env.LISTING)), shards=int(setting(Env.INDEX_SHARDS))),
            retention=timedelta(days=int(setting(Env.RETENTION_DAYS))),
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
        index_shards: int = INDEX_SHARDS,
        retention_days: int = JOB_RETENTION_DAYS,
    ) -> "Tidemill":
        """In any program.

        `table` is the stack's output JobsTable. `client` is a low-level DynamoDB client, and `job_packages` are the
        packages that hold the job types. `files` is an S3 client and the stack's output FilesBucket; without it, a
        payload of more than 64 KiB raises `NoBucketError`. `listed` says whether the stage lists jobs.
        `index_shards` should be the setting of the stage; readers find the jobs under any number. `retention_days` is
        its `job_retention_days`, for a job that a correction supersedes.
        """

        def bucket() -> Bucket:
            if files is None:
                raise NoBucketError("a payload of this size becomes a file; name the bucket with files=(client, name)")
            return Bucket(*files)

        indexes = Indexes(listed=listed, shards=index_shards)
        return cls(
            client,
            table=table,
            tenant=tenant,
            job_packages=job_packages,
            bucket=bucket,
            indexes=indexes,
            retention=option_values.span("retention_days", retention_days, timedelta(days=1)),
        )

    def submit(self, submission: Submission, *, trace: str | None = None, traceparent: str | None = None) -> Accepted:
        """Make a job with one conditional write; `replayed` if an earlier submission made it.

        `trace` is the id of the request that submits the job, as the logs of every attempt show it. Use it for one
        submission only; without it, a fresh token is used. `traceparent` is the W3C trace context that the job belongs
        to; without it, that of the span that OpenTelemetry records in this thread. An invalid one is ignored.

        Raises `UnknownJobTypeError` (`UnloadedJobTypeError` if a broken job file may declare the type),
        `InvalidPayloadError` with the path of each fault (also of a wrong type), `PayloadTooLargeError`,
        `KeyReusedError`, `SupersedeRefusedError`, or `MissingResourceError` for a wrong name; nothing was written then.
        After `StoreUnavailableError` or `TransactionConflictError`, submit the same again: with a key or `unique`, it
        makes no second job. One that supersedes another or is debounced needs `dynamodb:UpdateItem` as well.

        A debounced submission that became part of the job of an earlier one is `replayed`, and `Accepted.job` says when
        that begins now.
        """
        return self._parts.submit(submission, tenant=self._tenant, trace=_trace(trace, traceparent))

    def signal(self, job_id: str, name: str, data: Any = None) -> bool:
        """Give a job of this tenant the data (JSON) that it waits for. False if this tenant has no such job.

        A job that waits for this signal is queued at once; any other live job keeps it until a run asks for it. The
        first value counts, and the same again changes nothing. The program needs `dynamodb:UpdateItem` as well.

        Raises `SignalRefusedError` if the job has ended, has another value, or is a batch or a flow;
        `InvalidPayloadError` for an invalid name or data, `PayloadTooLargeError` above 4,096 bytes of compact ASCII
        JSON, and `StoreUnavailableError`: signal the same again then.
        """
        return self._parts.control.signal(self._tenant, job_id, name, data) is not None

    def undo(self, job_id: str) -> Accepted | None:
        """Submit the job that undoes this job of the tenant; `replayed` if an earlier call did. None without the job.

        The handler said with its success which job that is. The program needs `dynamodb:UpdateItem` as well.

        Raises `UndoRefusedError` if the job has not succeeded or recorded no undo. After `StoreUnavailableError` or
        `TransactionConflictError`, call it again: it submits no second job.
        """
        return self._parts.undoer(self._tenant, job_id)

    def publish(self, event: Event, *, trace: str | None = None, traceparent: str | None = None) -> Accepted:
        """Make the job of an event with one conditional write; `replayed` if an earlier publication made it.

        Its run makes a job for each consumer that this program's code knows now and whose filter matches. Raises as
        `submit`; `InvalidPayloadError` also for an unknown event type or version. Options are those of `submit`.
        """
        return publish(event, self._parts.submit, tenant=self._tenant, trace=_trace(trace, traceparent))

    def open_batch(self, batch: Batch, *, trace: str | None = None, traceparent: str | None = None) -> Accepted:
        """Make the job of a batch with one conditional write; `replayed` if an earlier opening made it.

        Jobs join it by `Submission.batch`, the id of this job, until `close_batch`; they need `dynamodb:UpdateItem` as
        well. A job that comes too late raises `BatchRefusedError`. Raises as `submit`, with the path of each fault.
        """
        return open_batch(batch, self._parts.submit, tenant=self._tenant, trace=_trace(trace, traceparent))

    def close_batch(self, batch_id: str) -> bool:
        """Let no more jobs join. The callbacks are submitted once all jobs are at rest. False without such a batch.

        May be repeated, also after `StoreUnavailableError`: a closed batch stays as it is. The program needs
        `dynamodb:UpdateItem` as well. Raises `SignalRefusedError` if its job was cancelled while it was open.
        """
        return close_batch(self._parts.control, self._tenant, batch_id, now=clock.now()) is not None

    def cancel_batch(self, batch_id: str) -> bool:
        """Let no more jobs join, and cancel those that have not ended; no callback comes. False without such a batch.

        May be repeated. The program needs `dynamodb:UpdateItem` as well. Raises `SignalRefusedError` if it has ended.
        """
        return cancel_batch(self._parts.control, self._tenant, batch_id) is not None

    def jobs_of(self, job_id: str, *, state: State | None = None) -> Iterator[Job] | None:
        """The jobs of a batch, or those of an event's consumers, in the order of their ids. None without such a job.

        It reads as it goes, so that 10,000 jobs need not fit into memory. A job that cannot be read is left out.
        """
        whole = self._parts.control.find(self._tenant, job_id)
        if whole is None or not has_members(whole):
            return None
        wanted = Wanted(tenant=self._tenant, since=EPOCH, state=state)
        return self._parts.member_listing.all(whole, wanted, now=clock.now())

    def start_flow(self, flow: Flow, *, trace: str | None = None, traceparent: str | None = None) -> Accepted:
        """Make the job of a flow with one conditional write, or none; `replayed` if an earlier start with the key did.

        Its jobs start once their parents have ended. Raises as `submit`; `InvalidPayloadError` with the path of each
        fault also for a cycle and for an unknown parent.
        """
        return start_flow(flow, self._parts.submit, tenant=self._tenant, trace=_trace(trace, traceparent))

    def add_nodes(self, flow_id: str, nodes: Sequence[Node]) -> bool:
        """Add up to 100 nodes to a flow that has not ended: all or none. False without such a flow.

        A handler may add nodes to its own flow, `run.flow`. They may follow each other, and nodes that the flow has;
        the same nodes again change nothing. The program needs `dynamodb:UpdateItem` and `BatchGetItem` as well.

        Raises `FlowRefusedError` if the flow has ended or was cancelled, `InvalidPayloadError` with the path of each
        fault, `PayloadTooLargeError`, and `TransactionConflictError` while too many others add nodes.
        """
        return self._parts.flow_growth.add_nodes(self._tenant, flow_id, nodes) is not None

    def cancel_flow(self, flow_id: str) -> bool:
        """Start no more nodes, and cancel those that have not ended. False without such a flow. May be repeated.

        The program needs `dynamodb:UpdateItem` as well. Raises `SignalRefusedError` if the flow has ended.
        """
        return self._parts.flow_growth.cancel(self._tenant, flow_id) is not None

    def submit_many(self, submissions: Iterable[Submission], *, traceparent: str | None = None) -> list[Answer]:
        """One answer each, in their order: the value that `submit` returns, or the error that it raises.

        The client's connections bound the number of parallel writes. Submissions of one group are written in their
        order.
        """
        trace = _trace(None, traceparent)
        return submit_all(self._parts.submit, submissions, tenant=self._tenant, trace=trace, overlap=self._overlap)

    def submission_item(self, submission: Submission, *, traceparent: str | None = None) -> TransactWrite:
        """An entry for a `TransactWriteItems` of your own: your writes and the job commit together or not at all.

        Use it at once, and once. Its condition fails if a job with the same key or `unique` exists: an earlier
        transaction has committed then. Raises what `submit` raises for an invalid submission.
        """
        if submission.group is not None:
            message = "a job enters its group in a separate transaction; use submit, or leave the group out"
            raise InvalidPayloadError([Fault("/group", message)])
        if submission.batch is not None:
            message = "a job joins its batch in a separate transaction; use submit, or leave the batch out"
            raise InvalidPayloadError([Fault("/batch", message)])
        if submission.supersedes is not None:
            message = "the earlier job is marked in a separate transaction; use submit"
            raise InvalidPayloadError([Fault("/supersedes", message)])
        if submission.debounce is not None:
            message = "the job of an earlier submission may have to be changed in its place; use submit"
            raise InvalidPayloadError([Fault("/debounce_seconds", message)])
        job = self._parts.submit.prepare(submission, tenant=self._tenant, trace=_trace(None, traceparent))
        # Store the payload before the transaction. Without the transaction it belongs to no job, and reconcile deletes
        # it.
        stored = self._parts.payloads.put_away(job)
        return own("Put", job_writes.insert(stored, indexes=self._parts.indexes), table=self._parts.table).write


def _sound_job_types(packages: Sequence[str]) -> JobTypes:
    job_types = job_type_loader.load_sound([*packages, EVENT_PACKAGE, BATCH_PACKAGE, FLOW_PACKAGE])
    for fault in job_types.faults:
        logging.getLogger(__name__).error("broken job file: %s", fault)
    return job_types


def _trace(request: str | None, traceparent: str | None) -> str:
    request = ids.new_token() if request is None else request
    explicit = from_traceparent(traceparent) if traceparent else traceparent_of(request)
    return trace_of(request, explicit or current_traceparent())


def job_id_of(item: TransactWrite) -> str:
    """The id of the job that a `submission_item` makes."""
    return split_key(item["Put"]["Item"])[1]
