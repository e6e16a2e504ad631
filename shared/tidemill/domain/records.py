"""`replace` for the records of the engine. Most are structs of msgspec, which Python creates faster than data classes.

A record with a field that does not count in a comparison is a data class, since msgspec has no such field. This
function serves both, so that a caller need not know which kind a record is. Type checkers see the one of data classes,
of which they know what each argument may be.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import replace
else:
    import dataclasses

    from msgspec import Struct, structs

    def replace(record: Any, /, **changes: Any) -> Any:
        """Return a copy of the record with these fields. Raises `TypeError` for a field that it does not have."""
        own = structs.replace if isinstance(record, Struct) else dataclasses.replace
        return own(record, **changes)


__all__ = ["replace"]
