"""Make sessions and clients of the SDK faster to create, without changing them. Each run of a command makes new ones.

Here the sessions of a process share what botocore reads from its own files and works out from names: the models of
services, the names of events, and which handlers take keyword arguments.

The code is in https://github.com/boto/botocore: `botocore/loaders.py`, `botocore/hooks.py`.
"""

from collections import defaultdict
from functools import cache
from typing import Any, Final

from botocore import hooks
from botocore.hooks import EventAliaser
from botocore.loaders import Loader

#: What was loaded, by the paths that were searched.
_loaded: Final[defaultdict[tuple[str, ...], dict[Any, Any]]] = defaultdict(dict)
_event_names: Final[dict[str, str]] = {}
_new_loader: Final = Loader.__init__
_new_aliaser: Final = EventAliaser.__init__
_accepts_kwargs: Final = cache(hooks.accepts_kwargs)


def install() -> None:
    """Replace three parts of botocore. A second call changes nothing."""
    setattr(Loader, "__init__", _loader)  # noqa: B010 - mypy sees a method
    setattr(EventAliaser, "__init__", _aliaser)  # noqa: B010 - mypy sees a method
    hooks.accepts_kwargs = _accepts_kwargs


def _loader(self: Any, *arguments: Any, **named: Any) -> None:
    _new_loader(self, *arguments, **named)
    self._cache = _loaded[tuple(self.search_paths)]


def _aliaser(self: Any, *arguments: Any, **named: Any) -> None:
    _new_aliaser(self, *arguments, **named)
    if self._event_aliases == hooks.EVENT_ALIASES:
        self._alias_name_cache = _event_names
