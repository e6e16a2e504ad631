"""Evaluates alarms as CloudWatch documents it, for the embedded AWS, which does not, and for tests of the alarms."""

from tidemill.local.alarms.definition import CompositeAlarm, MetricAlarm, MetricKey, State
from tidemill.local.alarms.evaluator import Evaluator, Transition
from tidemill.local.alarms.series import Series
from tidemill.local.alarms.template import read_alarms

__all__ = ["CompositeAlarm", "Evaluator", "MetricAlarm", "MetricKey", "Series", "State", "Transition", "read_alarms"]
