"""Short stories of single jobs in the simulated AWS, with every call that the engine makes written down.

A story has no chance, and no faults but those that it names. Its record in `records` shows what callers and operators
see, each request to AWS with its conditions, and each log line with its metrics. A test compares it with what happens
now, so a change that adds a call, drops a condition or words an answer differently shows in the diff of a record: read
it as you read code. `python -m tests.simulation.stories` writes the records anew.

A story acts as callers, the clocks and operators do. At most 40 small ones are kept, one for each idea, and read as
documentation. Unit tests and the checks of the simulator hold everything else.

The seeds say whether the engine keeps its promises when everything breaks. The stories say what it does when nothing
does, to the last attribute, which no promise covers: costs, orders, texts and figures.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

RECORDS: Final = Path(__file__).parent / "records"


def recorded() -> Sequence[str]:
    """The names of the stories that have a record, without a look at the engine."""
    return sorted(path.stem for path in RECORDS.iterdir())
