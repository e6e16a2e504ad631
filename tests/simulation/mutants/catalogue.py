"""The mutants that seeds catch. Each is a plausible fault of the protocol: one change to one function.

Those that need a play of their own are beside it: `outage`, `backlog`, `restore` and `progress` have such lists.
"""

from typing import Final

from tests.simulation.mutants.adaptive_limits import ADAPTIVE
from tests.simulation.mutants.batches import BATCHED
from tests.simulation.mutants.breakers import BREAKERS
from tests.simulation.mutants.callers_and_versions import OUTSIDE
from tests.simulation.mutants.caps import CAPPED
from tests.simulation.mutants.conditions import CLAUSES
from tests.simulation.mutants.debounce import DEBOUNCED
from tests.simulation.mutants.events import PUBLISHED
from tests.simulation.mutants.explanations import EXPLAINED
from tests.simulation.mutants.first_messages import HINTED
from tests.simulation.mutants.floods import FLOODED
from tests.simulation.mutants.flows import FLOWING
from tests.simulation.mutants.governor import GOVERNED
from tests.simulation.mutants.grouped_commits import GROUPED
from tests.simulation.mutants.histories import RECORDED
from tests.simulation.mutants.job_lifecycle import PROTOCOL
from tests.simulation.mutants.joint_calls import CALLED_JOINTLY
from tests.simulation.mutants.joint_inserts import JOINT_INSERTS
from tests.simulation.mutants.limits_and_groups import ITEMS
from tests.simulation.mutants.lines import LINES
from tests.simulation.mutants.operations import OPERATION
from tests.simulation.mutants.operators_reads import READ
from tests.simulation.mutants.passes import PASS
from tests.simulation.mutants.pauses import PAUSES
from tests.simulation.mutants.replays import REPLAYED
from tests.simulation.mutants.shared_limits import SHARED
from tests.simulation.mutants.signals import SIGNALLED
from tests.simulation.mutants.steps import STEPPED
from tests.simulation.mutants.stray_threads import STRAYS
from tests.simulation.mutants.undos import UNDONE
from tests.simulation.mutants.values_and_reports import SHOWN
from tests.simulation.mutants.waits_and_messages import WAITING

MUTANTS: Final = (
    *(*PROTOCOL, *STRAYS, *OPERATION, *PASS, *OUTSIDE, *CLAUSES, *WAITING, *SHOWN, *LINES, *ITEMS, *EXPLAINED),
    *(
        *RECORDED,
        *READ,
        *PAUSES,
        *ADAPTIVE,
        *BREAKERS,
        *SIGNALLED,
        *UNDONE,
        *FLOODED,
        *HINTED,
        *GOVERNED,
        *GROUPED,
        *JOINT_INSERTS,
        *CAPPED,
        *SHARED,
        *STEPPED,
        *PUBLISHED,
        *REPLAYED,
        *BATCHED,
        *DEBOUNCED,
        *FLOWING,
        *CALLED_JOINTLY,
    ),
)
