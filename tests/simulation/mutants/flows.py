"""Faults of flows."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

FLOWING: Final = (
    Mutant(
        "the end of any parent but the first moves no cursor",
        modules.FLOW_CURSOR,
        "Cursor.moves_on",
        "self.at in ended or self.by in ended",
        "self.at == 0 and 0 in ended",
    ),
    Mutant(
        "a failed parent lets its child start",
        modules.FLOW_RULES,
        "through",
        "on_failure is OnFailure.CONTINUE",
        "on_failure is not OnFailure.SKIP",
    ),
    Mutant(
        "a failure skips what it must block", modules.FLOW_RULES, "through", "Resolution.FAILED", "Resolution.SKIPPED"
    ),
    Mutant(
        "a blocked parent lets its child start",
        modules.FLOW_RULES,
        "through",
        "return NodeVerdict.BLOCK",
        "return NodeVerdict.START",
    ),
    Mutant(
        "a start replaces the job of its node",
        modules.FLOW_WRITES,
        "replaces_blocked",
        "f'#{FLOW_ATTRIBUTE}.#mark = :blocked'",
        "f'#{FLOW_ATTRIBUTE}.#mark = :blocked OR attribute_exists(#{FLOW_ATTRIBUTE})'",
    ),
    Mutant(
        "a flow ends while nodes are alive",
        modules.FLOW_LOOK,
        "Looked.at_rest",
        "Resolution.PENDING not in self.resolutions",
        "bool(self.resolutions)",
    ),
    Mutant(
        "a flow succeeds although its last node has failed", modules.FLOW_LOOK, "Looked.failed", "Resolution.FAILED", ""
    ),
    Mutant(
        "a flow counts each resolution once",
        modules.FLOW_LOOK,
        "Looked.counts",
        "map(str, self.resolutions)",
        "set(map(str, self.resolutions))",
    ),
    Mutant(
        "the last node that ends asks for no look",
        modules.FLOW_ADVANCE,
        "FlowAdvance._start",
        "due.get(LAST) is NodeVerdict.START",
        "",
    ),
    Mutant(
        "what an advance leaves asks for no look",
        modules.FLOW_ADVANCE,
        "FlowAdvance._start",
        "bool(busy.nodes) or any((len(chain) > MOST_OF_GROUP for chain in chains))",
        "False",
    ),
    Mutant(
        "a node that stays blocked asks for no look",
        modules.FLOW_ADVANCE,
        "FlowAdvance._start",
        "any((job is None and said is NodeVerdict.BLOCK for said, job in made))",
        "False",
    ),
    Mutant(
        "the end of a redriven node asks for no look",
        modules.FLOW_ADVANCE,
        "FlowAdvance.advance",
        "look or redriven",
        "look",
    ),
    Mutant(
        "added nodes ask for no look",
        modules.FLOW_WRITES,
        "look",
        "waits_for_signal(flow)",
        "waits_for_signal(flow) and (not condition)",
    ),
    Mutant(
        "the cancel of a flow asks for no look",
        modules.FLOWS,
        "FlowControl.cancel",
        "self._parts.ask_to_look(tenant, flow_id)",
        "",
    ),
    Mutant(
        "publish owes each advance of a flow",
        modules.PUBLISH,
        "Publisher._take",
        "return step.do()",
        "if step.work.kind is Kind.FLOW:\n"
        "    self._owed.owe(step.work, now=self._clock(), error='none')\n"
        "return step.do()",
    ),
    Mutant(
        "a redriven flow leaves its dead nodes",
        modules.FLOW_LOOK,
        "FlowLook._redrive",
        "asked = flow.redrives[-1]",
        "return True\nasked = flow.redrives[-1]",
    ),
    Mutant(
        "a node gets no results of its parents",
        modules.FLOW_PARENTS,
        "ParentResults._read",
        "job.result is None",
        "job.flow",
    ),
)
