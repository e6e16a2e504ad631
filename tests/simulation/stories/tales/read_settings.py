"""What a configuration says at several times: settings in force, ended, and of a newer version."""

from typing import Any

from tests.simulation.stories.stage import TENANT, Stage
from tests.simulation.stories.told_job import at, job
from tidemill.domain.runtime_configuration import RuntimeConfiguration
from tidemill.domain.states import State
from tidemill.names import Lane

_OTHER = "111122223333:AROABOB"
_VALUES: dict[str, Any] = {
    "flags.colour": "blue",
    "pauses.lane=default": {"rate": 3},
    "pauses.schedule=sim.periodic": {},
    "types.sim.effect.max_attempts": 7,
    "breakers.payments": {"force": "open"},
    "breakers.later": {"force": "newer"},
    "quotas.default": {"count": 5, "period_seconds": 60},
    f"quotas.{TENANT}": {"count": 9, "period_seconds": 30},
    "caps.default": 4,
    f"caps.{TENANT}": 2,
    f"weights.{_OTHER}": 1.5,
    "strain.level": 2,
    "governor": {"off": True},
}


def settings_that_act_and_settings_that_have_ended(stage: Stage) -> None:
    entry = {"at": at(0).isoformat(), "by": "eve", "reason": "", "until": at(60).isoformat()}
    seen = RuntimeConfiguration(
        version=3, document={"settings": {name: {"value": value, **entry} for name, value in _VALUES.items()}}
    )

    def act() -> object:
        return [
            {
                "flags": seen.flags(now),
                "pauses": [str(pause.target) for pause in seen.pauses(now)],
                "pause of a job": bool(seen.pause_of(job(State.QUEUED), now=now)),
                "pause of a schedule": bool(seen.pause_of_schedule("sim.periodic", Lane.BULK, scheduled=now)),
                "strain": [bool(seen.strain(now)), seen.strain_level(now)],
                "governor is off": seen.governor_is_off(now),
                "overrides": len(seen.overrides(now)),
                "forced": sorted(seen.forced_breakers(now)),
                "quotas": [seen.quota_of(tenant, now=now) for tenant in (TENANT, _OTHER)],
                "caps": [seen.cap_of(tenant, now=now) for tenant in (TENANT, _OTHER, "third")],
            }
            for now in (at(30), at(60))
        ]

    stage.operate("asks", act)
