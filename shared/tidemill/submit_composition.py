"""The part of the composition root that only the submit function needs."""

import os
from functools import cache
from typing import TYPE_CHECKING

from tidemill import composition
from tidemill.dynamodb.joint_inserts import JointInserts
from tidemill.names import Env, Lane
from tidemill.settings import setting
from tidemill.system import clock
from tidemill.telemetry.outcome_log import joint_insert_failed

if TYPE_CHECKING:
    from tidemill.application.health import HealthChecks


@cache
def insert_together() -> JointInserts:
    return JointInserts(
        composition.dynamodb(),
        table=setting(Env.JOBS_TABLE),
        indexes=composition.indexes(),
        failed=joint_insert_failed,
    )


@cache
def health() -> "HealthChecks":
    from tidemill.application.health import HealthChecks
    from tidemill.dynamodb import canary_marks

    return HealthChecks(
        canaries=lambda: canary_marks.submitted(composition.dynamodb(), table=setting(Env.JOBS_TABLE)),
        lanes=tuple(Lane) if os.environ.get(Env.CANARY) else (),
        broken_job_files=len(composition.known_job_types().faults),
        clock=clock.now,
    )
