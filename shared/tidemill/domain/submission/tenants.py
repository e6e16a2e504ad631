"""The names that tenants can have. Pure."""

import re
from typing import Final

#: A tenant is part of an item key. https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
LONGEST_TENANT: Final = 512
TENANT_RULE: Final = f"1 to {LONGEST_TENANT} visible ASCII characters, not starting with '!'"

#: Visible ASCII. Keys that start with `!` belong to the other items of the jobs table.
_TENANT: Final = re.compile(rf"[\"-~][!-~]{{0,{LONGEST_TENANT - 1}}}")


def is_tenant(name: str) -> bool:
    return _TENANT.fullmatch(name) is not None
