"""The part of a settlement that holds a job: the counts of its holds, and its place in a line. Pure."""

from tidemill.aws.attribute_values import number, text
from tidemill.domain.attempt.outcomes import Settlement, open_runs_after
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.clauses import Clause
from tidemill.dynamodb.document import HOLD_ATTRIBUTES, OTHER_HOLDS, WAIT
from tidemill.dynamodb.indexes import in_line


def hold(job: Job, settlement: Settlement) -> Clause:
    """The attributes of a hold. Every other outcome clears them: they count consecutive holds."""
    cleared = [*HOLD_ATTRIBUTES, "open_runs", "wait"]
    if settlement.hold_cause is None:
        return Clause(removes=cleared)
    sets = {
        "holds": number(settlement.holds),
        "open_runs": number(open_runs_after(job, settlement)),
        "hold_cause": text(settlement.hold_cause),
    }
    if settlement.other_holds:
        sets["other_holds"] = OTHER_HOLDS.encode(settlement.other_holds)
    if settlement.wait:
        sets["wait"] = WAIT.encode(settlement.wait)
        if settlement.state is State.PARKED:
            # In the order submitted, so that a job that is parked again keeps its place.
            sets |= in_line(settlement.wait.line, job.created_at)
    return Clause(sets=sets, removes=cleared)
