"""What the classes of `noria.trt` share: strict attributes, and `with` that does nothing."""

from __future__ import annotations

import warnings
from typing import Any, Self

__all__ = ["Closable", "Strict"]


class Strict:
    """Refuses attributes that the class does not have, as TensorRT's own objects do."""

    def __setattr__(self, name: str, value: Any) -> None:
        known = name.startswith("_") or any(name in c.__dict__ for c in type(self).__mro__)
        if not known:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, value)


class Closable(Strict):
    """`with` works and frees nothing: objects live as long as they are used.

    Source: tensorrt-api spec 2.
    """

    def __enter__(self) -> Self:
        warnings.warn(
            f"{type(self).__name__} need not be used in a with statement: it is freed when nothing "
            "refers to it",
            DeprecationWarning,
            stacklevel=2,
        )
        return self

    def __exit__(self, *_: object) -> None:
        return None
