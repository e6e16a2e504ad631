"""The clock through its function: from the index to the lane, to the second, and past what it cannot read."""

from datetime import timedelta

from functions.wake import handler as wake
from shared.domain.job import Job
from shared.domain.states import State
from shared.names import WAKE_WINDOW_SECONDS
from tests.support.mill import Context, Mill, client_of_queue_delays
