"""A clause: what one feature adds to a write of the protocol."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from tidemill.aws.clients import Item


class Clause(Struct, frozen=True, kw_only=True):
    """Further attributes and conditions of a write. In `conditions`, the alias of the attribute `name` is `#name`."""

    sets: Mapping[str, Item] = field(default_factory=dict)
    #: The write removes each of these that no clause sets.
    removes: Sequence[str] = ()
    conditions: Sequence[str] = ()
    #: The attributes that the conditions name.
    names: Sequence[str] = ()
    #: The values of the conditions.
    values: Mapping[str, Item] = field(default_factory=dict)


NO_CLAUSE: Final = Clause()
