"""The composition root: reads the environment once and builds what the functions need, each when first asked for."""

import json
import os
import time
from collections.abc import Mapping
from datetime import timedelta
from functools import cache

from shared.adapters import clients, clock, job_types
from shared.adapters.job_store import DynamoJobStore
from shared.adapters.limits import DynamoLimits
from shared.adapters.payloads import DynamoPayloads
from shared.adapters.queues import LaneUrls, SqsLanes
from shared.adapters.telemetry import Telemetry
from shared.adapters.worker import Worker
from shared.application.job_types import JobTypes
from shared.application.publish import Publisher
from shared.application.settle import Tools
from shared.application.submit import Submit
from shared.domain.errors import MillraceError
from shared.names import Env, Lane


class SettingError(MillraceError):
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
    return DynamoPayloads()


@cache
def known_job_types() -> JobTypes:
    return job_types.load(setting(Env.JOB_PACKAGES).split(","))


@cache
def submit() -> Submit:
    return Submit(
        store=store(), payloads=payloads(), job_types=known_job_types(), clock=clock.now, new_id=clock.new_job_id
    )


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
    return Worker(
        tools=Tools(
            store=store(),
            payloads=payloads(),
            limits=DynamoLimits(),
            job_types=known_job_types(),
            submit=submit(),
            clock=clock.now,
            new_token=clock.new_token,
            draw=clock.draw,
            pause=time.sleep,
        ),
        lane=lane,
        queue_url=urls.queue,
        queues=clients.sqs(),
        stage=setting(Env.STAGE),
        job_timeout=timedelta(seconds=float(setting(Env.JOB_TIMEOUT_SECONDS))),
    )
