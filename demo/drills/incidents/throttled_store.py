"""The maximum throughput of the jobs table was set for a quiet day, so DynamoDB throttles most writes.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-ondemand-capacity-exceeded-mitigation.html
"""

from collections.abc import Mapping

from demo.drills.drill import Drill


class ThrottledStore(Drill):
    name = "throttled-store"
    alarm = "ThrottledTable"
    heading = "throttled-table"
    #: Without the table, submissions fail and jobs do not run.
    pages = frozenset({"FailedSubmissions", "LateCanary", "LateStarts"})

    def begin(self) -> Mapping[str, str]:
        table = self.stage.jobs_table()
        self.stage.client("dynamodb").update_table(TableName=table, OnDemandThroughput={"MaxWriteRequestUnits": 1})
        return {"TABLE": table}
