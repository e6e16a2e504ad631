"""Log lines and metrics. Functions of an app that submit jobs use `Telemetry`, as those of the engine do."""

from tidemill.telemetry.outcome_log import Telemetry

__all__ = ["Telemetry"]
