"""A clause: what one feature adds to a write of the protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidemill.aws.clients import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
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
