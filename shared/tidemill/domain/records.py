"""`replace` for the records of the engine, which are structs of msgspec: Python makes such a class forty times faster.

Type checkers see the function for data classes, of which they know what each argument may be.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import replace
else:
    from msgspec.structs import replace

__all__ = ["replace"]
