"""The public door for functions of the app that serve HTTP themselves. They import from here and from no module below.

Each name loads its module on first use. Workers, publish and the command line import single modules of this package,
and they must not load the router or need Powertools for that.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemill.http.caller_identity import tenant
    from tidemill.http.problems import ProblemError
    from tidemill.http.request import idempotency_key, read_body
    from tidemill.http.request_trace import caller_trace
    from tidemill.http.router import REPLAYED, json_response, resolver
else:
    from importlib import import_module

    #: A module may not have the name of a public function: importing it would hide the function.
    _MODULES = {
        "REPLAYED": "router",
        "ProblemError": "problems",
        "caller_trace": "request_trace",
        "idempotency_key": "request",
        "json_response": "router",
        "read_body": "request",
        "resolver": "router",
        "tenant": "caller_identity",
    }

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


__all__ = [
    "REPLAYED",
    "ProblemError",
    "caller_trace",
    "idempotency_key",
    "json_response",
    "read_body",
    "resolver",
    "tenant",
]
