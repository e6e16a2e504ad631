"""Whether this machine is fast enough for the minutes of the alarms. On a slow one, healthy canaries fire pages."""

import math
from typing import Final

from demo.drills.alarm_watch import AlarmWatch
from demo.drills.stage import Stage
from tidemill.domain.states import State
from tidemill.names import Lane

#: Minutes without a canary after which the alarm `LateCanary` fires.
SILENT_MINUTES: Final = 4
#: A canary is due in each minute, and each may take longer than the one before it.
ALLOWED_MINUTES: Final = SILENT_MINUTES - 1


def slowness(stage: Stage, watch: AlarmWatch) -> str:
    """Why the machine is too slow for the alarms, by the canaries of the next minutes of a healthy stage, or empty."""
    earlier = {job.id for job in stage.canaries()}
    began = watch.now()
    for _ in range(SILENT_MINUTES):
        watch.next()
    waited = watch.now() - began
    times: dict[str, list[float]] = {lane: [] for lane in Lane}
    for job in stage.canaries():
        if job.id not in earlier and job.state is State.SUCCEEDED and job.finished_at:
            times[job.lane].append((job.finished_at - job.created_at).total_seconds())
    took = max(max(each, default=waited) for each in times.values())
    allowed = ALLOWED_MINUTES * watch.minute_seconds
    if took <= allowed:
        return ""
    enough = math.ceil(2 * took / ALLOWED_MINUTES)
    return (
        f"this machine is too slow for the drill: a canary took {took:.0f} s or longer, and the alarm allows "
        f"{allowed:.0f} s. Give its minutes more seconds: make drill NAME=… MINUTE={enough}"
    )
