# Signatures that the stub generator cannot see: of a type made with Python's own interface.
noria._native.QuickCaller.__call__:
    \from typing import Any
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

noria._native.QuickCaller.set_quick:
    def set_quick(self, calls: QuickCalls, /) -> None:
        """Give the QuickCalls that does calls natively."""
