"""The simulated S3: whole objects, read after write."""

import io
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.simulation.world.errors import ServiceError
from tests.simulation.world.faults import Fault, Faults

Request = Mapping[str, Any]

#: The tries of the SDK for one call.
_TRIES: Final = 3


class S3:
    """All buckets of one world."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        #: By key, how many further tries to delete the file fail.
        self._failing: dict[str, int] = {}
        self.objects: dict[tuple[str, str], bytes] = {}
        #: Called with each deleted key.
        self.watchers: list[Callable[[str], None]] = []
        #: Called with each key that is put, in the task of the call.
        self.put_watchers: list[Callable[[str], None]] = []

    def put_object(self, request: Request) -> dict[str, Any]:
        body = request["Body"]
        self.objects[request["Bucket"], request["Key"]] = body.encode() if isinstance(body, str) else bytes(body)
        for watch in self.put_watchers:
            watch(request["Key"])
        return {}

    def get_object(self, request: Request) -> dict[str, Any]:
        try:
            held = self.objects[request["Bucket"], request["Key"]]
        except KeyError:
            raise ServiceError("NoSuchKey", "The specified key does not exist.", status=404) from None
        return {"Body": io.BytesIO(held), "ContentLength": len(held)}

    def delete_object(self, request: Request) -> dict[str, Any]:
        key = request["Key"]
        if key not in self._failing:
            # Also when all else is calm: most documents expire only then.
            self._failing[key] = _TRIES if self._faults.occurs(Fault.FILE_KEPT, when_calm=True) else 0
        if self._failing[key]:
            self._failing[key] -= 1
            raise ServiceError("SlowDown", "Please reduce your request rate.", status=503)
        if self.objects.pop((request["Bucket"], request["Key"]), None) is not None:
            for watch in self.watchers:
                watch(request["Key"])
        return {}
