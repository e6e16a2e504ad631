"""A call that AWS denies is a bug of the deployment. No adapter takes it for a refused condition or for an outage."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import A_BURST, LEASE, NOW, RETENTION, SECOND, TENANT, a_job, an_undo_of
from tidemill.application.dispatch.owed import Kind, Owed, Work
from tidemill.application.passes.pass_state import first_pass
from tidemill.application.ports import LimitSlot
from tidemill.domain.limits.limits import Limit
from tidemill.domain.operations.runtime_configuration import NOTHING_SET, Change
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.dispatch.owed_items import DynamoOwedWork
from tidemill.dynamodb.flows.flow_items import DynamoFlows
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.dynamodb.passes.pass_store import DynamoPasses
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.system.ids import new_job_id

OWED = Owed(
    work=Work(kind=Kind.ADVANCE, tenant=TENANT, name="a"),
    since=NOW,
    next_try=NOW,
    tries=0,
    error="busy",
    resent=False,
    version="1",
    failures=1,
)
SLOT = LimitSlot(line=Line.for_limit("a"), limit=Limit(concurrency=1), token="t", until=NOW + LEASE, job=(TENANT, "a"))


class Denied:
    """A client whose calls are all denied."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def denied(**_request: Any) -> None:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, name)

        return denied


CLIENT: Any = Denied()
STORE = DynamoJobStore(CLIENT, table="jobs", retention=RETENTION)
DONE = a_job(state=State.SUCCEEDED, due=None)
CHANGE = Change(version=1, name="flags.a", at=NOW, by="ada", reason="", value=1)
CALLS: dict[str, Callable[[], object]] = {
    "enter": lambda: DynamoLimits(CLIENT, table="jobs").acquire(SLOT, now=NOW),
    "leave": lambda: DynamoLimits(CLIENT, table="jobs").release(SLOT),
    "vacate": lambda: DynamoLimits(CLIENT, table="jobs").vacate(SLOT.line, "a"),
    "owe": lambda: DynamoOwedWork(CLIENT, table="jobs").owe(OWED.work, now=NOW, error="busy"),
    "put off": lambda: DynamoOwedWork(CLIENT, table="jobs").put_off(OWED, until=NOW + SECOND, error=None),
    "done": lambda: DynamoOwedWork(CLIENT, table="jobs").done(OWED),
    "pass": lambda: DynamoPasses(CLIENT, table="jobs", new_token=lambda: "1").write(first_pass(NOW)),
    # Transactions: only writes that a handler asks for are its own fault.
    "begin a burst": lambda: STORE.begin_debounce(a_job(burst=A_BURST), after=None),
    "insert into a batch": lambda: STORE.insert_if_absent(a_job(id=new_job_id()), batch=a_job(id=new_job_id())),
    "undo": lambda: STORE.undo(DONE, *an_undo_of(DONE)),
    "supersede": lambda: STORE.supersede(DONE, a_job()),
    "change a setting": lambda: DynamoConfiguration(CLIENT, table="jobs").write(NOTHING_SET, CHANGE),
    "add nodes to a flow": lambda: DynamoFlows(CLIENT, table="jobs").add(a_job(), "[]", now=NOW),
    "file": lambda: DynamoPayloads(
        CLIENT, table="jobs", bucket=lambda: Bucket(CLIENT, "files"), new_token=lambda: "1"
    ).load(a_job(payload=None, payload_at="file/1")),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_denied_call_is_raised_as_it_is(name: str) -> None:
    with pytest.raises(ClientError, match="AccessDeniedException"):
        CALLS[name]()
