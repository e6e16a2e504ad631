"""Faults of flows."""

from typing import Final

from tests.simulation.mutants import modules
from tests.simulation.mutants.apply import Mutant

FLOWING: Final = (
    Mutant(
        "the end of any parent but the first moves no cursor",
        modules.FLOW_CURSOR,
        "        return self.at in ended or self.by in ended",
        "        return self.at == 0 and 0 in ended",
    ),
    Mutant(
        "a failed parent lets its child start",
        modules.FLOW_RULES,
        "    if on_failure is OnFailure.CONTINUE:\n        return NodeVerdict.START\n",
        "    if on_failure is not OnFailure.SKIP:\n        return NodeVerdict.START\n",
    ),
    Mutant(
        "a failure skips what it must block",
        modules.FLOW_RULES,
        "(Resolution.FAILED, OnFailure.FAIL) else",
        "(Resolution.SKIPPED, OnFailure.FAIL) else",
    ),
    Mutant(
        "a blocked parent lets its child start",
        modules.FLOW_RULES,
        "            return NodeVerdict.BLOCK\n        case",
        "            return NodeVerdict.START\n        case",
    ),
    Mutant(
        "a start replaces the job of its node",
        modules.FLOW_WRITES,
        'conditions=[f"#{FLOW_ATTRIBUTE}.#mark = :blocked"],',
        'conditions=[f"#{FLOW_ATTRIBUTE}.#mark = :blocked OR attribute_exists(#{FLOW_ATTRIBUTE})"],',
    ),
    Mutant(
        "a flow ends while nodes are alive",
        modules.FLOW_LOOK,
        "        return Resolution.PENDING not in self.resolutions\n",
        "        return bool(self.resolutions)\n",
    ),
    Mutant(
        "a flow succeeds although its last node has failed",
        modules.FLOW_LOOK,
        "end in {Resolution.FAILED, Resolution.BLOCKED} for",
        "end in {Resolution.BLOCKED} for",
    ),
    Mutant(
        "a flow counts each resolution once",
        modules.FLOW_LOOK,
        "Counter(map(str, self.resolutions))",
        "Counter(set(map(str, self.resolutions)))",
    ),
    Mutant(
        "the last node that ends asks for no look",
        modules.FLOW_ADVANCE,
        "        return started, left or stays or due.get(LAST) is NodeVerdict.START",
        "        return started, left or stays",
    ),
    Mutant(
        "what an advance leaves asks for no look",
        modules.FLOW_ADVANCE,
        "        left = bool(busy.nodes) or any(len(chain) > MOST_OF_GROUP for chain in chains)\n",
        "        left = False\n",
    ),
    Mutant(
        "a node that stays blocked asks for no look",
        modules.FLOW_ADVANCE,
        "        stays = any(job is None and said is NodeVerdict.BLOCK for said, job in made)\n",
        "        stays = False\n",
    ),
    Mutant(
        "the end of a redriven node asks for no look",
        modules.FLOW_ADVANCE,
        "        if look or redriven:\n",
        "        if look:\n",
    ),
    Mutant(
        "added nodes ask for no look",
        modules.FLOW_WRITES,
        "    if waits_for_signal(flow):\n",
        "    if waits_for_signal(flow) and not condition:\n",
    ),
    Mutant(
        "the cancel of a flow asks for no look",
        modules.FLOWS,
        "        self._parts.ask_to_look(tenant, flow_id)\n        return cancelled",
        "        return cancelled",
    ),
    Mutant(
        "publish owes each advance of a flow",
        modules.PUBLISH,
        "            return step.do()",
        "            if step.work.kind is Kind.FLOW:\n"
        "                self._owed.owe(step.work, now=self._clock(), error='none')\n"
        "            return step.do()",
    ),
    Mutant(
        "a redriven flow leaves its dead nodes",
        modules.FLOW_LOOK,
        "        asked = flow.redrives[-1]\n",
        "        return True\n        asked = flow.redrives[-1]\n",
    ),
    Mutant(
        "a node gets no results of its parents",
        modules.FLOW_PARENTS,
        "yield None if job is None or job.result is None else",
        "yield None if job is None or job.flow else",
    ),
)
