"""The simulated S3: whole objects, read after write."""

import io
from collections.abc import Callable, Mapping
from typing import Any

from tests.simulation.world.errors import ServiceError

Request = Mapping[str, Any]


class S3:
    """All buckets of one world."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        #: Called with each deleted key.
        self.watchers: list[Callable[[str], None]] = []

    def put_object(self, request: Request) -> dict[str, Any]:
        body = request["Body"]
        self.objects[request["Bucket"], request["Key"]] = body.encode() if isinstance(body, str) else bytes(body)
        return {}

    def get_object(self, request: Request) -> dict[str, Any]:
        try:
            held = self.objects[request["Bucket"], request["Key"]]
        except KeyError:
            raise ServiceError("NoSuchKey", "The specified key does not exist.", status=404) from None
        return {"Body": io.BytesIO(held), "ContentLength": len(held)}

    def delete_object(self, request: Request) -> dict[str, Any]:
        if self.objects.pop((request["Bucket"], request["Key"]), None) is not None:
            for watch in self.watchers:
                watch(request["Key"])
        return {}
