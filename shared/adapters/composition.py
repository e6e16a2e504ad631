"""The composition root: reads the environment once and builds what the functions need, each when first asked for."""

import json
import os
import time
from collections.abc import Mapping
from datetime import timedelta
from functools import cache

from shared.adapters import backlog, clients, clock, job_types
from shared.adapters.cursors import Cursors
from shared.adapters.job_store import DynamoJobStore
from shared.adapters.limits import DynamoLimits
from shared.adapters.listing import DynamoListing
from shared.adapters.message_run import Terms
from shared.adapters.payloads import Bucket, DynamoPayloads
from shared.adapters.queues import LaneUrls, SqsLanes, SqsLetterBox
from shared.adapters.survey import DynamoSurvey
from shared.adapters.telemetry import Telemetry
from shared.adapters.worker import Worker
from shared.application.control import Control
from shared.application.job_types import JobTypes
from shared.application.publish import Publisher
from shared.application.reconcile import Reconciler
from shared.application.settle import Tools
from shared.application.submit import Submit
from shared.application.wake import Waker
from shared.domain.errors import TidemillError
from shared.names import Env, Lane


class SettingError(TidemillError):
    """An environment variable that the stack should have set is missing."""


def setting(name: Env) -> str:
    """Raises `SettingError`."""
    try:
        return os.environ[name]
    except KeyError:
        raise SettingError(f"{name} is not set; the stack sets it, so this function was deployed without it") from None


@cache
def store() -> DynamoJobStore:
    return DynamoJobStore(
        clients.dynamodb(),
        table=setting(Env.JOBS_TABLE),
        retention=timedelta(days=int(setting(Env.RETENTION_DAYS))),
        listed=bool(setting(Env.LISTING)),
    )


@cache
def payloads() -> DynamoPayloads:
    return DynamoPayloads(
        clients.dynamodb(),
        table=setting(Env.JOBS_TABLE),
        # Asked for by the first large payload: a function that meets none needs no bucket.
        bucket=lambda: Bucket(clients.s3(), setting(Env.FILES_BUCKET)),
        new_token=clock.new_token,
    )


@cache
def known_job_types() -> JobTypes:
    return job_types.load(setting(Env.JOB_PACKAGES).split(","))


@cache
def submit() -> Submit:
    return Submit(
        store=store(), payloads=payloads(), job_types=known_job_types(), clock=clock.now, new_id=clock.new_job_id
    )


@cache
def control() -> Control:
    return Control(store=store(), clock=clock.now, new_token=clock.new_token)


@cache
def listing() -> DynamoListing:
    return DynamoListing(clients.dynamodb(), table=setting(Env.JOBS_TABLE), read=store().get_many)


@cache
def cursors() -> Cursors:
    """Asks for their key, so it is for those alone who need one."""
    with clients.translated():
        answer = clients.secrets().get_secret_value(SecretId=setting(Env.CURSOR_KEY_SECRET))
    return Cursors(answer["SecretString"].encode())


@cache
def lane_urls() -> Mapping[Lane, LaneUrls]:
    return {Lane(name): LaneUrls(**urls) for name, urls in json.loads(setting(Env.LANES)).items()}


@cache
def lanes() -> SqsLanes:
    return SqsLanes(clients.sqs(), lane_urls())


@cache
def publisher() -> Publisher:
    return Publisher(store=store(), payloads=payloads(), lanes=lanes(), clock=clock.now)


def telemetry() -> Telemetry:
    """A new one for each invocation."""
    return Telemetry(stage=setting(Env.STAGE))


@cache
def worker() -> Worker:
    """A worker knows one lane: its own."""
    ((lane, urls),) = lane_urls().items()
    terms = Terms(
        tools=Tools(
            store=store(),
            payloads=payloads(),
            limits=DynamoLimits(clients.dynamodb(), table=setting(Env.JOBS_TABLE), draw=clock.draw),
            job_types=known_job_types(),
            submit=submit(),
            clock=clock.now,
            new_token=clock.new_token,
            draw=clock.draw,
            pause=time.sleep,
        ),
        lane=lane,
        job_timeout=timedelta(seconds=float(setting(Env.JOB_TIMEOUT_SECONDS))),
        follows_groups=os.environ.get(Env.FOLLOW_GROUPS) != "false",
    )
    return Worker(terms=terms, queue_url=urls.queue, queues=clients.sqs(), stage=setting(Env.STAGE))


@cache
def waker() -> Waker:
    return Waker(store=store(), clock=clock.now, pause=time.sleep)


def reconciler() -> Reconciler:
    """A new one for each invocation, which asks once how far behind each lane is."""

    @cache
    def lane_delay(lane: Lane) -> timedelta:
        urls = lane_urls().get(lane)
        # Nothing waits on a lane that is deployed no more.
        return backlog.delay(clients.sqs(), clients.cloudwatch(), urls.queue, now=clock.now()) if urls else timedelta(0)

    limit = timedelta(seconds=float(setting(Env.RECONCILE_LIMIT_SECONDS)))
    return Reconciler(store=store(), clock=clock.now, limit=limit, lane_delay=lane_delay)


@cache
def survey() -> DynamoSurvey:
    return DynamoSurvey(clients.dynamodb(), table=setting(Env.JOBS_TABLE))


@cache
def letter_boxes() -> Mapping[Lane, SqsLetterBox]:
    return {lane: SqsLetterBox(clients.sqs(), urls.letters) for lane, urls in lane_urls().items()}
