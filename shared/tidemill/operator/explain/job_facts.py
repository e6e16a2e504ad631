"""Gathers what `explain` needs to know about one job: at most six reads of the table, and one of its queue."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tidemill.application.dispatch.owed import Kind, Owed, Work
from tidemill.application.explain.explanation import Facts, GroupHead, LaneDepth
from tidemill.application.ports import Clock
from tidemill.aws.attribute_values import milliseconds, text
from tidemill.aws.clients import AWS_ERRORS, translated
from tidemill.domain.breakers.breaker import Breaker
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import Job
from tidemill.domain.limits.limit_state import LimitState
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, RuntimeConfiguration
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Line
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.dispatch.owed_items import DynamoOwedWork
from tidemill.dynamodb.groups.group_items import decoded_head, head_key
from tidemill.dynamodb.indexes import line_partition
from tidemill.dynamodb.job_reader import JobReader
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.names import ATTENTION_INDEX, ATTENTION_KEY, ATTENTION_SORT_KEY
from tidemill.sqs.queue_depth import backlog

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

#: A job may change while the facts about it are read. Then they are read again, so often at most.
_TRIES: Final = 3
_ON_LANE: Final = frozenset({State.QUEUED, State.RETRYING})
#: The most jobs of a line that are counted: about 16 read units.
_MOST_COUNTED: Final = 1000


class JobFacts:
    """Reads one table. `queues` is the URL of the queue of each lane."""

    def __init__(
        self, dynamodb: "DynamoDBClient", sqs: "SQSClient", *, table: str, queues: dict[str, str], clock: Clock
    ) -> None:
        self._dynamodb = dynamodb
        self._sqs = sqs
        self._table = table
        self._queues = queues
        self._clock = clock
        self._jobs = JobReader(dynamodb, table=table)

    def read(self, tenant: str, job_id: str) -> Facts | None:
        """None if the job does not exist or has expired. The caller adds `Facts.stopped`."""
        facts, job = None, self._jobs.get(tenant, job_id)
        for _ in range(_TRIES):
            now = self._clock()
            if job is None or job.lifetime.over(now):
                return None
            facts = self._about(job, now)
            again = self._jobs.get(tenant, job_id)
            if again == job:
                break
            job = again
        return facts

    def _about(self, job: Job, now: datetime) -> Facts:
        ready = job.state in _ON_LANE and (job.due is None or job.due <= now)
        line = job.wait.line if job.wait and job.state is State.PARKED else None
        # A job that has not waited for its limit does not say which one that is.
        key = job.wait.line.limit_key if job.wait else None
        shares = key.shared if key else None
        # An ended job has what it has.
        configuration = NOTHING_SET if job.state.terminal else self._configuration()
        return Facts(
            job=job,
            now=now,
            head=self._head(job) if job.state is State.WAITING else None,
            pause=configuration.pause_of_line(line, now=now) if line and line.cause is Cause.PAUSE else None,
            overrides=[one for one in configuration.overrides(now) if one.acts_on(job.type, shares=shares)],
            limit=self._limit(line, configuration, now) if line and line.cause is Cause.LIMIT else None,
            before_it=self._before(job, line) if line else None,
            forced=configuration.forced_breaker(line.key, now=now) if line and line.cause is Cause.BREAKER else None,
            breaker=self._breaker(line) if line and line.cause is Cause.BREAKER else None,
            owed=self._owed(job) if ready or job.state is State.WAITING else None,
            lane=self._lane(job.lane) if ready else None,
        )

    def _head(self, job: Job) -> GroupHead | None:
        with translated():
            answer = self._dynamodb.get_item(
                TableName=self._table, Key=head_key(job.tenant, job.group.key or ""), ConsistentRead=True
            )
        head = decoded_head(answer["Item"]) if "Item" in answer else None
        if head is None or head.job_id is None:
            return None
        found = self._jobs.get(job.tenant, head.job_id)
        # A later job may have replaced an expired one under its key.
        return GroupHead(job_id=head.job_id, job=found if found and head.leads(found) else None)

    def _configuration(self) -> RuntimeConfiguration:
        return DynamoConfiguration(self._dynamodb, table=self._table).read(consistent=True)

    def _limit(self, line: Line, configuration: RuntimeConfiguration, now: datetime) -> LimitState:
        state = DynamoLimits(self._dynamodb, table=self._table).look(line)
        return replace(state, limit=configuration.limit_of(line, state.limit, last=state.last_tenant, now=now))

    def _breaker(self, line: Line) -> Breaker:
        return DynamoBreakers(self._dynamodb, table=self._table).read(line.key, consistent=True)

    def _before(self, job: Job, line: Line) -> int:
        with translated():
            answer: Any = self._dynamodb.query(
                TableName=self._table,
                IndexName=ATTENTION_INDEX,
                KeyConditionExpression="#partition = :partition AND #at < :at",
                ExpressionAttributeNames={"#partition": ATTENTION_KEY, "#at": ATTENTION_SORT_KEY},
                ExpressionAttributeValues={
                    ":partition": text(line_partition(line)),
                    ":at": milliseconds(job.created_at),
                },
                Select="COUNT",
                Limit=_MOST_COUNTED,
            )
        return int(answer["Count"])

    def _owed(self, job: Job) -> Owed | None:
        work = (
            Work(kind=Kind.ADVANCE, tenant=job.tenant, name=job.group.key or "")
            if job.state is State.WAITING
            else Work(kind=Kind.DISPATCH, tenant=job.tenant, name=job.id)
        )
        return DynamoOwedWork(self._dynamodb, table=self._table).find(work)

    def _lane(self, lane: str) -> LaneDepth | None:
        if lane not in self._queues:
            return None
        try:
            found = backlog(self._sqs, self._queues[lane])
        except (TidemillError, *AWS_ERRORS):
            return None  # the document says the most
        return LaneDepth(waiting=found.waiting, delayed=found.delayed, in_flight=found.in_flight)
