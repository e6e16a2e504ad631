"""The job types of the demo and of the end-to-end tests: local stage only, with their own table."""

from collections.abc import Mapping
from typing import ClassVar

from constructs import Construct

from stacks.application import Application
from tidemill.cdk.iam_actions import UPDATE
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.settings import Reader, switch
from tidemill.cdk.storage.on_demand_table import on_demand_table
from tidemill.names import Lane

PACKAGE = "functions.demo_jobs"
#: Environment variable that `functions.demo_jobs.ledger` reads.
LEDGER_TABLE = "DEMO_LEDGER_TABLE"
LEDGER_KEY = "name"
#: Environment variable that `functions.demo_jobs.group` reads.
BROKEN = "TIDEMILL_DEMO_BROKEN"


class DemoJobs(Application):
    #: A release that breaks a type, for a drill.
    settings: ClassVar[Mapping[str, Reader]] = {"broken_demo_release": switch}

    def add_to(self, pipeline: Pipeline, asset: str) -> None:  # noqa: ARG002 - demo jobs add no function
        if PACKAGE not in self.config.job_packages:
            return
        ledger = on_demand_table(Construct(pipeline, "DemoLedger"), config=self.config, partition_key=LEDGER_KEY)
        pipeline.allow_jobs([UPDATE], [ledger.table_arn], lane=Lane.CRITICAL)
        pipeline.add_job_variables({LEDGER_TABLE: ledger.table_name}, lane=Lane.CRITICAL)
        if self.given.get("broken_demo_release"):
            pipeline.add_job_variables({BROKEN: "yes"})
