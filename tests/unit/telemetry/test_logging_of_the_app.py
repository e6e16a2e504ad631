"""A job file may configure `logging`. Each line of the engine, with its metrics, is still written once."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tidemill.application.attempt.run_log import RUN_LOGGER, RunLog

ROOT: Final = Path(__file__).parents[3]
_WORKER: Final = """
import logging.config
from aws_lambda_powertools import Logger
from aws_lambda_powertools.logging import utils
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter
from tidemill.application.attempt.run_log import RunLog
from tidemill.telemetry import handler_output
from tidemill.telemetry.handler_stream import HANDLER_FIELDS
from tidemill.telemetry.outcome_log import configuration_not_read

handler_output.install()
{configure}
configuration_not_read(OSError("no answer"))
HANDLER_FIELDS.set({{"job_id": "j"}})
RunLog({{"job_id": "j"}}).warning("charged")
"""
#: The documentation of Python and of Powertools shows these.
CONFIGURATIONS: Final = {
    "others are disabled": """logging.config.dictConfig({
        "version": 1,
        "handlers": {"console": {"class": "logging.StreamHandler"}},
        "root": {"handlers": ["console"], "level": "INFO"},
    })""",
    "the root writes JSON": """logging.config.dictConfig({
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": LambdaPowertoolsFormatter}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "json", "stream": "ext://sys.stdout"}},
        "root": {"handlers": ["console"], "level": "INFO"},
    })""",
    "all loggers get a level": "utils.copy_config_to_registered_loggers(source_logger=Logger('app', level='WARNING'))",
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_neither_drops_nor_repeats_a_line(name: str) -> None:
    script = _WORKER.format(configure=CONFIGURATIONS[name])
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "shared"), "TIDEMILL_STAGE": "test"}

    run = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)

    lines = [json.loads(line) for line in (run.stdout + run.stderr).splitlines()]
    assert sorted(line["message"] for line in lines) == ["charged", "runtime configuration not read"]


def test_run_log_writes_although_its_logger_was_disabled_during_the_run(caplog: pytest.LogCaptureFixture) -> None:
    log = RunLog({})
    logging.getLogger(RUN_LOGGER).disabled = True

    log.warning("charged")

    assert [record.getMessage() for record in caplog.records] == ["charged"]
