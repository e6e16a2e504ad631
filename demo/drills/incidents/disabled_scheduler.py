"""The schedule of wake is disabled, so scheduled jobs do not begin."""

from collections.abc import Mapping

from demo.drills.drill import Drill


class DisabledScheduler(Drill):
    name = "disabled-scheduler"
    alarm = "SilentScheduler"
    heading = "silent-scheduler"

    def begin(self) -> Mapping[str, str]:
        schedule = self.stage.schedule("wake")
        self.stage.client("scheduler").update_schedule(**{**schedule, "State": "DISABLED"})
        return {}
