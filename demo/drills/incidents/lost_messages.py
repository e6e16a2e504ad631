"""A filter on the mapping of a worker matches the canaries only, so Lambda deletes the messages of all other jobs.

"If an item doesn't match the filter criteria, Lambda deletes it from the queue":
https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html
"""

import json
from collections.abc import Mapping

from demo.drills.drill import Drill
from tidemill.names import LIVE_ALIAS


class LostMessages(Drill):
    name = "lost-messages"
    alarm = "LostMessages"
    heading = "lost-messages"

    def begin(self) -> Mapping[str, str]:
        mapping = self.stage.mapping("work")
        pattern = json.dumps({"body": {"tenant": self.stage.canary_tenants()}})
        self.stage.client("lambda").update_event_source_mapping(
            UUID=mapping, FilterCriteria={"Filters": [{"Pattern": pattern}]}
        )
        return {}

    def each_minute(self) -> None:
        """Ask for a pass over the table, as the next day does."""
        function = self.stage.function("reconcile")
        self.stage.client("lambda").invoke(FunctionName=function, InvocationType="Event", Qualifier=LIVE_ALIAS)
