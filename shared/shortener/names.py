"""The strings that the stack and the code of the example share."""

from enum import StrEnum
from typing import Final


class Env(StrEnum):
    """Environment variables of the example's functions and job types."""

    LINKS_TABLE = "SHORTENER_LINKS_TABLE"
    CLICKS_TABLE = "SHORTENER_CLICKS_TABLE"
    #: ARN of the secret with the key for hashing client addresses.
    ADDRESS_KEY_SECRET = "SHORTENER_ADDRESS_KEY_SECRET"  # noqa: S105 - the name of a variable
    #: Number of proxies in front of the API whose `X-Forwarded-For` is trusted.
    TRUSTED_PROXY_HOPS = "SHORTENER_TRUSTED_PROXY_HOPS"
    #: Path of a MaxMind database inside the asset; empty to use the data of iptocc.
    GEOIP_DATABASE = "SHORTENER_GEOIP_DATABASE"
    #: Bucket of the files that `clicks.export` writes.
    EXPORTS_BUCKET = "SHORTENER_EXPORTS_BUCKET"


class Output(StrEnum):
    """Outputs of the example's stack."""

    API_ID = "ShortenerApiId"
    API_URL = "ShortenerApiUrl"


#: The tenant of all click jobs, since clicks are anonymous. The tenant of a caller begins with an account number, so it
#: cannot be this one.
VISITORS: Final = "anonymous:shortener"

LINK_KEY: Final = "code"
CLICK_KEY: Final = "pk"
CLICK_SORT_KEY: Final = "sk"
TTL_ATTRIBUTE: Final = "expires_at"
