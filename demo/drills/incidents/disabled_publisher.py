"""The event source mapping of the publisher is disabled, so no accepted job reaches its lane."""

from collections.abc import Mapping

from demo.drills.drill import Drill


class DisabledPublisher(Drill):
    name = "disabled-publisher"
    alarm = "LateCanary"
    heading = "late-canary"

    def begin(self) -> Mapping[str, str]:
        mapping = self.stage.mapping("publish")
        self.stage.client("lambda").update_event_source_mapping(UUID=mapping, Enabled=False)
        return {}
