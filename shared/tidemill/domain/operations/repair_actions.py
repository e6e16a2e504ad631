"""What reconcile repairs. Apart from reconcile, so that every function can count it and none imports the rest."""

from enum import StrEnum


class RepairAction(StrEnum):
    """A repair by reconcile, or a repair that it could not do."""

    #: These three as in `Nudge`.
    NUDGED = "nudged"
    WOKEN = "woken"
    UNDELIVERABLE = "undeliverable"
    #: A group advanced past a head that had ended.
    ADVANCED = "advanced"
    #: An orphaned payload was deleted.
    DISCARDED = "discarded"
    #: The store did not respond, or other transactions conflicted. The next run tries again.
    FAILED = "failed"
