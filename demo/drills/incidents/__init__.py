"""All drills, in the order in which `make drill NAME=all` runs them."""

from collections.abc import Mapping
from typing import Final

from demo.drills.drill import Drill
from demo.drills.incidents.broken_deployment import BrokenDeployment
from demo.drills.incidents.disabled_publisher import DisabledPublisher
from demo.drills.incidents.disabled_scheduler import DisabledScheduler
from demo.drills.incidents.downstream_down import DownstreamDown
from demo.drills.incidents.downstream_slow import DownstreamSlow
from demo.drills.incidents.drifted_mapping import DriftedMapping
from demo.drills.incidents.foreground_strained import ForegroundStrained
from demo.drills.incidents.killed_workers import KilledWorkers
from demo.drills.incidents.lost_messages import LostMessages
from demo.drills.incidents.lost_stream import LostStream
from demo.drills.incidents.partition import Partition
from demo.drills.incidents.poison_flood import PoisonFlood
from demo.drills.incidents.restore import Restore
from demo.drills.incidents.tenant_flood import TenantFlood
from demo.drills.incidents.throttled_store import ThrottledStore

DRILLS: Final[Mapping[str, type[Drill]]] = {
    drill.name: drill
    for drill in (
        DisabledPublisher,
        PoisonFlood,
        KilledWorkers,
        DisabledScheduler,
        LostMessages,
        TenantFlood,
        DownstreamDown,
        DownstreamSlow,
        ForegroundStrained,
        DriftedMapping,
        ThrottledStore,
        Partition,
        BrokenDeployment,
        LostStream,
        # It replaces the jobs table of the stage.
        Restore,
    )
}
