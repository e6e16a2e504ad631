"""The systems, in the order in which each phase runs them."""

from typing import Final

from tests.benchmarks.peers.celery_sqs import CELERY
from tests.benchmarks.peers.on_postgres import DBOS, GRAPHILE_WORKER, PROCRASTINATE
from tests.benchmarks.peers.system import System
from tests.benchmarks.peers.tidemill_app import TIDEMILL

SYSTEMS: Final[tuple[System, ...]] = (TIDEMILL, CELERY, PROCRASTINATE, GRAPHILE_WORKER, DBOS)
