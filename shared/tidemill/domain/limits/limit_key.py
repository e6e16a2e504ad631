"""What a limit counts for: a job type or a shared limit, the text from the payload, and perhaps a lane and a tenant.

As text, it names the item of the limit and the line of the jobs that wait for it. Pure.
"""

import hashlib
import json
from typing import Any, Final, Self

from msgspec import Struct

from tidemill.domain.records import replace

#: No name of a job type contains a colon.
_SHARED: Final = "limit:"
#: The member of a lane. An object, since a tenant may have any text.
_LANE: Final = "lane"
#: The longest text, which is part of item keys and index keys.
LONGEST_KEY: Final = 256


class LimitKey(Struct, frozen=True, kw_only=True):
    """Either `type` or `shared` says whose limit it is."""

    type: str | None = None
    #: The name of a limit that several job types share.
    shared: str | None = None
    #: What `key` of the job type made from the payload; empty without one.
    text: str = ""
    #: None for a limit that all lanes share.
    lane: str | None = None
    #: None for a limit that all tenants share.
    tenant: str | None = None

    def __str__(self) -> str:
        """If the text is longer than `LONGEST_KEY`, its SHA-256 takes the place of payload and tenant.

        Whose limit it is stays legible: the overrides of a type count in all of its lines.
        """
        if len(whole := _text_of(self)) <= LONGEST_KEY:
            return whole
        return _text_of(replace(self, text=hashlib.sha256(whole.encode()).hexdigest(), tenant=None))

    @classmethod
    def of(cls, parts: Any) -> Self | None:
        """From the decoded text; None for another one, such as that of a cap."""
        if not isinstance(parts, list) or not parts:
            return None
        first, further = str(parts[0]), parts[2:]
        lane = next((part.get(_LANE) for part in further if isinstance(part, dict)), None)
        tenant = next((part for part in further if isinstance(part, str)), None)
        text = str(parts[1]) if len(parts) > 1 else ""
        if first.startswith(_SHARED):
            return cls(shared=first.removeprefix(_SHARED), text=text, lane=lane, tenant=tenant)
        return cls(type=first, text=text, lane=lane, tenant=tenant)

    @property
    def title(self) -> str:
        """What kind of limit it is."""
        shared = "limit" if self.shared is None else f"shared limit {self.shared}"
        return shared if self.lane is None else f"{shared} of lane {self.lane}"


def _text_of(key: LimitKey) -> str:
    first = key.type if key.shared is None else _SHARED + key.shared
    lanes = [] if key.lane is None else [{_LANE: key.lane}]
    tenants = [] if key.tenant is None else [key.tenant]
    return json.dumps([first, key.text, *lanes, *tenants])
