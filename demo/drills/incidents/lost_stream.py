"""The stream of the jobs table is disabled. A stream that is enabled again is a new one, without earlier changes."""

from collections.abc import Mapping

from demo.drills.drill import Drill


class LostStream(Drill):
    name = "lost-stream"
    alarm = "LateCanary"
    heading = "late-canary"

    def begin(self) -> Mapping[str, str]:
        table, dynamodb = self.stage.jobs_table(), self.stage.client("dynamodb")
        dynamodb.update_table(TableName=table, StreamSpecification={"StreamEnabled": False})
        return {}
