"""The one list of comparisons: reconcile, `tidemill status` and `tidemill repair` make these and no others."""

from collections.abc import Mapping, Sequence

from tidemill.operator.comparisons.alarms import Alarms
from tidemill.operator.comparisons.comparison import Comparison
from tidemill.operator.comparisons.mappings import Mappings
from tidemill.operator.comparisons.queues import QueuePolicies, Queues
from tidemill.operator.comparisons.schedules import Schedules
from tidemill.operator.comparisons.tables import Tables
from tidemill.operator.drift.expected_resource import Expected, Kind


def comparisons(expected: Sequence[Expected] = ()) -> Mapping[Kind, Comparison]:
    """For one pass over these resources."""
    alarms = Alarms([each.physical_id for each in expected if each.kind is Kind.ALARM and each.physical_id])
    made: Sequence[Comparison] = (Tables(), Queues(), QueuePolicies(), alarms, Mappings(), Schedules())
    return {comparison.kind: comparison for comparison in made}
