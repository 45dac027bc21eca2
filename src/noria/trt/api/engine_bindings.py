"""The older half of `ICudaEngine`: bindings by index, up to 9.x.

With k profiles there are k copies of the bindings; names of later copies end in ` [profile p]`.
Source: tensorrt-api spec 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any

from noria.plugins.types import Dims
from noria.trt.api.strict import Closable
from noria.trt.release import current, versioned

if TYPE_CHECKING:
    from noria.trt.api.engine import Binding
    from noria.trt.api.record import TrtRecord


def by_binding(method: Callable[..., Any], key: str = "index") -> Any:
    """Make the older twin of a method: it takes the number of a binding instead of a name.

    Args:
        method: of an engine or a context, with the name as its first argument.
        key: name of the first argument of the twin.
    """

    @wraps(method)
    def call(self: Any, *values: Any, **named: Any) -> Any:
        first, *rest = values or (named.pop(key),)
        engine = getattr(self, "_engine", self)
        return method(self, engine._at(first).name, *rest, **named)

    call.__doc__ = f"`{method.__name__}` by the number of a binding."
    return call


@versioned(
    {
        "<10 deprecated>=8.5": (
            "num_bindings -> num_io_tensors, max_batch_size -> explicit batches, "
            "get_binding_index -> names, get_binding_name -> get_tensor_name, "
            "binding_is_input -> get_tensor_mode, get_profile_shape -> get_tensor_profile_shape, "
            "get_profile_shape_input -> get_tensor_profile_values, "
            "is_execution_binding -> get_tensor_mode"
        ),
    }
)
class EngineBindings(Closable):
    """Base of `ICudaEngine`."""

    _bindings: list[Binding]
    _record: TrtRecord

    @property
    def num_bindings(self) -> int:
        """Inputs and outputs times profiles."""
        return len(self._bindings) * max(1, len(self._record.profiles))

    @property
    def max_batch_size(self) -> int:
        """Largest implicit batch; 1 where batches are explicit."""
        return self._record.max_batch if self._record.implicit else 1

    def __len__(self) -> int:
        self._need_old("__len__")
        return len(self._bindings) * max(1, len(self._record.profiles))

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        self._need_old("__iter__")
        return iter([self._name_at(i) for i in range(len(self))])

    def __getitem__(self, key: int | str) -> str | int:
        self._need_old("__getitem__")
        return self._index_of(key) if isinstance(key, str) else self._name_at(self._index_of(key))

    def get_binding_index(self, name: str) -> int:
        """Index of a binding; -1 if nothing is called so."""
        try:
            return self._index_of(name)
        except KeyError:
            return -1

    def get_binding_name(self, index: int) -> str:
        """Name of a binding."""
        return self._name_at(self._index_of(index))

    def binding_is_input(self, index: int | str) -> bool:
        """Whether a binding is fed."""
        return self._at(index).is_input

    def get_profile_shape(self, profile_index: int, binding: int | str) -> list[Dims]:
        """[min, opt, max] of an input."""
        found = self._record.profiles[profile_index].shapes.get(self._at(binding).name)
        return [] if found is None else [Dims(s) for s in found]

    def get_profile_shape_input(self, profile_index: int, binding: int | str) -> list[list[int]]:
        """[min, opt, max] of the values of an input that decides shapes."""
        found = self._record.profiles[profile_index].values.get(self._at(binding).name)
        return [] if found is None else [list(v) for v in found]

    def is_execution_binding(self, binding: int) -> bool:
        """Every binding is."""
        return True

    def _name_at(self, index: int) -> str:
        profile, at = divmod(index, len(self._bindings))
        name = self._bindings[at].name
        return name if profile == 0 else f"{name} [profile {profile}]"

    def _index_of(self, key: int | str) -> int:
        total = len(self._bindings) * max(1, len(self._record.profiles))
        if isinstance(key, str):
            base, mark, rest = key.partition(" [profile ")
            names = [b.name for b in self._bindings]
            if key in names:
                return names.index(key)
            if mark and base in names and rest.rstrip("]").isdigit():
                return int(rest.rstrip("]")) * len(names) + names.index(base)
            raise KeyError(key)
        if not -total <= int(key) < total:
            raise IndexError(f"binding {key} of {total}")
        return int(key) % total

    def _at(self, key: int | str) -> Binding:
        return self._bindings[self._index_of(key) % len(self._bindings)]

    def _need_old(self, name: str) -> None:
        number = current().number
        if number is not None and number >= (10, 0):
            raise TypeError(f"an engine has no {name} since TensorRT 10.0; use num_io_tensors")
