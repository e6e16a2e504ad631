"""A steady load after the demo, whose own jobs come all at once and use two lanes only."""

import json
import time
from collections.abc import Iterator
from typing import Any, Final

from tidemill.local.lifecycle import App
from tidemill.names import Lane

SECONDS: Final = 45
#: Every how many seconds each lane gets a job, and a job that fails at first.
_EVERY: Final = 1
_FAILING_EVERY: Final = 5


def steady_load(app: App) -> None:
    """Submit jobs to all lanes for `SECONDS`."""
    begin = time.monotonic()
    for second in range(0, SECONDS, _EVERY):
        for job in _jobs(second):
            app.request("POST", "/jobs", body=json.dumps(job).encode())
        time.sleep(max(0, begin + second + _EVERY - time.monotonic()))


def _jobs(second: int) -> Iterator[dict[str, Any]]:
    for lane in Lane:
        yield {"type": "demo.wait", "payload": {"seconds": 0.05 + second % 7 / 20}, "lane": lane}
    if second % _FAILING_EVERY == 0:
        yield {"type": "demo.flaky", "payload": {"failures": 2}}
