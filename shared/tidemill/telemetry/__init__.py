"""Log lines and metrics. Functions of an app that submit jobs use them, as those of the engine do."""

from tidemill.telemetry.outcome_log import Telemetry, logger

__all__ = ["Telemetry", "logger"]
