"""`python -m tools.state_machine` prints docs/internals/state-machine.md from the states and `TRANSITIONS`."""

import inspect
import re
from typing import Final

from tidemill.domain import states
from tidemill.domain.states import TERMINAL, TRANSITIONS, State

_HEAD: Final = """\
# The state machine

`make docs` writes this file from `shared/tidemill/domain/states.py`. Each arrow is a write of the protocol. The store
applies it only in the state where the arrow begins. The dot is a missing or expired document.
"""
#: The three sentences of the comment above a state: how a job enters it, how it leaves it, how long it is kept.
_STATE: Final = re.compile(r'#: (.+?)\. (.+?)\. (.+?)\.\n +[A-Z]+ = "(\w+)"')


def mermaid() -> str:
    arrows: dict[tuple[str, str], list[str]] = {}
    for write, rows in TRANSITIONS.items():
        for before, afters in rows.items():
            for after in sorted(afters):
                arrows.setdefault((before or "[*]", after), []).append(write)
    lines = [f"    {before} --> {after}: {', '.join(writes)}" for (before, after), writes in arrows.items()]
    ends = [f"    {state} --> [*]" for state in State if state in TERMINAL]
    return "\n".join(["stateDiagram-v2", *lines, *ends])


def document() -> str:
    rows = {state: columns for *columns, state in _STATE.findall(inspect.getsource(states))}
    table = [f"| `{state}` | {' | '.join(rows[state])} |" for state in State]
    head = ["| state | how a job enters | how a job usually leaves | how long the job is kept |", "|---|---|---|---|"]
    return "\n".join([_HEAD, "```mermaid", mermaid(), "```", "", *head, *table, ""])


if __name__ == "__main__":
    print(document(), end="")
