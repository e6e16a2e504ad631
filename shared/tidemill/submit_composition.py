"""The part of the composition root that only the submit function needs."""

from functools import cache

from tidemill import composition
from tidemill.dynamodb.joint_inserts import JointInserts
from tidemill.names import Env
from tidemill.settings import setting
from tidemill.telemetry.outcome_log import joint_insert_failed


@cache
def insert_together() -> JointInserts:
    return JointInserts(
        composition.dynamodb(),
        table=setting(Env.JOBS_TABLE),
        indexes=composition.indexes(),
        failed=joint_insert_failed,
    )
