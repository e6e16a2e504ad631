"""A filter on the mapping of a worker matches the canaries only, so Lambda deletes the messages of all other jobs.

"If an item doesn't match the filter criteria, Lambda deletes it from the queue":
https://docs.aws.amazon.com/lambda/latest/dg/with-sqs-filtering.html
"""

import json
from collections.abc import Mapping

from demo.drills.drill import Drill
from demo.drills.stage import ask_for_pass


class LostMessages(Drill):
    name = "lost-messages"
    alarm = "LostMessages"
    heading = "lost-messages"

    def begin(self) -> Mapping[str, str]:
        mapping = self.stage.mapping("work")
        pattern = json.dumps({"body": {"tenant": sorted({job.tenant for job in self.stage.canaries()})}})
        self.stage.client("lambda").update_event_source_mapping(
            UUID=mapping, FilterCriteria={"Filters": [{"Pattern": pattern}]}
        )
        return {}

    def each_minute(self) -> None:
        ask_for_pass(self.stage)
