"""The Python client signals the jobs of its tenant."""

import pytest

from tests.support.builders import TENANT
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tidemill.client import SignalRefusedError, Submission, Tidemill
from tidemill.dynamodb.job_reader import JobReader


def test_a_job_of_the_tenant_is_signalled_and_that_of_another_is_not_found(client: FaultyClient, table: Table) -> None:
    tidemill, other = (
        Tidemill.at(table.name, tenant=name, job_packages=["tests.support.jobs"], client=client)  # type: ignore[arg-type]  # a proxy
        for name in (TENANT, "another")
    )
    job = tidemill.submit(Submission(type="test.noop", payload={"n": 1})).job

    assert tidemill.signal(job.id, "approval", {"by": "ada"})
    assert tidemill.signal(job.id, "approval", {"by": "ada"})
    with pytest.raises(SignalRefusedError, match="another value of the signal approval"):
        tidemill.signal(job.id, "approval", None)
    assert not other.signal(job.id, "approval", {"by": "ada"})

    stored = JobReader(table.client, table=table.name).get(TENANT, job.id)
    assert stored
    assert [each.data for each in stored.signals.received] == ['{"by":"ada"}']
