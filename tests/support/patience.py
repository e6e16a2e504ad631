"""How long a test waits for a condition before it fails."""

from typing import Final

#: Says nothing about speed: it only ends a test that would wait forever. A machine with a load of 20 must stay below.
PATIENCE_SECONDS: Final = 180
