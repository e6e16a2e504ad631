"""The routes of the HTTP API: API Gateway, the functions and the OpenAPI document read them here.

It imports nothing else of the engine, because the constructs and the functions share it.
"""

from typing import Final, NamedTuple


class Route(NamedTuple):
    """`path` is in the notation of API Gateway, with `{id}` and `{name}` for parameters."""

    #: The operation of the OpenAPI document.
    operation: str
    method: str
    path: str
    #: The verb of the function that serves it.
    function: str
    #: For a public route: why it exposes nothing private. Empty if callers must be authenticated.
    public_because: str = ""


ROUTES: Final = (
    Route("submitJob", "POST", "/jobs", "submit"),
    Route("submitJobs", "POST", "/jobs/batch", "submit"),
    Route("publishEvent", "POST", "/events", "submit"),
    Route("openBatch", "POST", "/batches", "submit"),
    Route("startFlow", "POST", "/flows", "submit"),
    Route("addNodes", "POST", "/flows/{id}/nodes", "submit"),
    Route("health", "GET", "/health", "submit"),
    Route("listJobs", "GET", "/jobs", "query"),
    Route("getJob", "GET", "/jobs/{id}", "query"),
    Route("cancelJob", "POST", "/jobs/{id}/cancel", "control"),
    Route("redriveJob", "POST", "/jobs/{id}/redrive", "control"),
    Route("retryJob", "POST", "/jobs/{id}/retry", "control"),
    Route("signalJob", "POST", "/jobs/{id}/signals/{name}", "control"),
    Route("undoJob", "POST", "/jobs/{id}/undo", "control"),
    Route("getBatch", "GET", "/batches/{id}", "query"),
    Route("closeBatch", "POST", "/batches/{id}/close", "control"),
    Route("cancelBatch", "POST", "/batches/{id}/cancel", "control"),
    Route("getFlow", "GET", "/flows/{id}", "query"),
    Route("cancelFlow", "POST", "/flows/{id}/cancel", "control"),
    Route(
        "describe",
        "GET",
        "/openapi.json",
        "query",
        public_because="The description of the API is public and holds no data of jobs.",
    ),
)
