"""Release counts with the overrides of operators."""

from typing import Any

import pytest

from tests.support.builders import A_WAIT
from tests.support.configurations import configured, overridden
from tests.unit.application.waiting.test_release import TAKEN, World, parked
from tidemill.application.waiting.release import Releaser
from tidemill.domain.limits.limit_key import LimitKey
from tidemill.domain.limits.limit_state import LimitState
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line


@pytest.mark.parametrize("text", ["", "a" * 300], ids=["short key", "long key"])
@pytest.mark.parametrize(("concurrency", "free"), [(3, 2), (1, 0), (None, 1)])
def test_a_release_counts_with_the_override_in_force(concurrency: int | None, free: int, text: str) -> None:
    """The item has the declared limit, of which an operator may have made more or less since."""
    line = Line.for_limit(str(LimitKey(type="test.job", text=text)))
    changes = [] if concurrency is None else [overridden("test.job.concurrency_per_key", concurrency)]
    waits = replace(A_WAIT, key=line.key)
    jobs = [parked(id=f"job-{number}", wait=waits) for number in range(4)]
    world: Any = World(state=LimitState(limit=Limit(concurrency=2), held=TAKEN, marked=True), shown=jobs, line=line)

    released = Releaser(
        store=world,
        limits=world,
        clock=world.clock,
        configuration=lambda: configured(*changes),
    ).release(line)

    assert [job.id for job in released] == [job.id for job in jobs[:free]]
