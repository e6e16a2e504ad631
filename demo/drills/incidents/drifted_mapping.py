"""An operator lowers the concurrency of a worker by hand and forgets it, so the stage differs from its template."""

from collections.abc import Mapping
from typing import Final

from demo.drills.drill import Drill

#: https://docs.aws.amazon.com/lambda/latest/api/API_ScalingConfig.html
SMALLEST: Final = 2


class DriftedMapping(Drill):
    name = "drifted-mapping"
    alarm = "DriftedResources"
    heading = "drifted-resources"

    def begin(self) -> Mapping[str, str]:
        functions, mapping = self.stage.client("lambda"), self.stage.mapping("work-critical")
        functions.update_event_source_mapping(UUID=mapping, ScalingConfig={"MaximumConcurrency": SMALLEST})
        return {}
