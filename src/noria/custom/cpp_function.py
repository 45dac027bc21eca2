"""One function of a C++ library: its layers, its exceptions, the limits of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from noria import _native
from noria._core.errors import ParserError
from noria.binary.symbol_names import demangled
from noria.meta import Layer, NetworkInfo

DATA_TYPES: dict[np.dtype[Any], int] = {
    np.dtype(np.float32): 0,
    np.dtype(np.float16): 1,
    np.dtype(np.int8): 2,
    np.dtype(np.int32): 3,
    np.dtype(np.int64): 4,
    np.dtype(np.uint8): 5,
    np.dtype(np.bool_): 5,
}
MAX_DIMS = 8
FAILURES = (_native.CustomCodeError, _native.MissingFunctionError, _native.CustomResultError)

T = TypeVar("T")
Tensors = list[npt.NDArray[Any]]


class ParserReturnedFalseError(ParserError):
    """The parser returned false: there is no result for this item."""


class CppFunction:
    """Base of the parsers of all kinds.

    Attributes:
        where: library and function, as errors name it.
        lock: held from handing over names and thresholds to the end of the call they are for.
    """

    nothing = "the frame counts as one without objects"
    check_macro = "CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE"

    def __init__(self, native: Any, where: str) -> None:
        self.native = native
        self.where = where
        self.lock = _native.CallLock()
        self._names: tuple[str, ...] | None = None

    def invoke(
        self, layers: Mapping[str, Layer], call: Callable[[Tensors, list[int]], T | None]
    ) -> T:
        """Do one call with these layers, one at a time.

        Args:
            layers: outputs of the network, as the mapping has them when the call begins.
            call: calls the native function with arrays and their data types; None for false.

        Raises:
            ParserReturnedFalseError: it returned false.
            ParserError: it threw, left something that its signature does not allow, or a layer
                cannot be passed to it.
        """
        layers = dict(layers)
        tensors, types = self._tensors(layers)
        with self.lock:
            if self.lock.inside:
                raise called_in_call(self.where)
            self.lock.inside = True
            try:
                self._set_layers(layers)
                result = call(tensors, types)
            except FAILURES as error:
                raise self._failed(error) from error
            finally:
                self.lock.inside = False
        if result is None:
            text = f"the parser returned false: {self.nothing}"
            raise ParserReturnedFalseError(text, where=self.where)
        return result

    def _failed(self, error: Exception) -> ParserError:
        """Make the error for one of `FAILURES`."""
        if isinstance(error, _native.CustomCodeError):
            return ParserError(f"the parser threw {error}", where=self.where)
        if isinstance(error, _native.MissingFunctionError):
            return missing_function(error, self.where)
        return ParserError(
            str(error),
            where=self.where,
            fix=f"is it a function of another kind? {self.check_macro} tells",
        )

    def _tensors(self, layers: Mapping[str, Layer]) -> tuple[Tensors, list[int]]:
        tensors = [layer.data for layer in layers.values()]
        types = []
        for i, (name, tensor) in enumerate(zip(layers, tensors, strict=True)):
            types.append(data_type(name, tensor, self.where))
            if not tensor.flags.carray:  # parsers may decode in place: never into others' memory
                tensors[i] = np.require(tensor, requirements=("C", "A", "W"))
        return tensors, types

    def _set_layers(self, layers: Mapping[str, Layer]) -> None:
        """Hand over the names of layers if they changed."""
        names = tuple(layers)
        if names != self._names:
            # Binding indices count inputs and outputs together; the input is 0.
            self.native.set_layers(list(names), list(range(1, len(names) + 1)))
            self._names = names


def called_in_call(where: str) -> ParserError:
    """Make the error for a call from inside a call, in the same thread."""
    return ParserError(
        "the parser was called again from inside its own call (same thread)",
        where=where,
        fix="a signal handler or a finaliser does so: it can set a flag for the program instead",
    )


def missing_function(call: Exception, where: str) -> ParserError:
    """Make the error for a call of a function of a library that is not installed.

    Args:
        call: its text is `function of library`.
        where: library and function of the user.
    """
    return ParserError(
        f"the code called {demangled(str(call))}, which is not installed on this machine",
        where=where,
        fix=[
            "code that needs NVIDIA's libraries while a model runs cannot run without them",
            "noria inspect shows what a library asks of them",
        ],
    )


def data_type(name: str, tensor: npt.NDArray[Any], where: str) -> int:
    """Return the number that C++ has for the type of a layer.

    Raises:
        ParserError: it has none, or the layer has too many axes.
    """
    if tensor.ndim > MAX_DIMS:
        raise ParserError(
            f"layer {name} has {tensor.ndim} axes",
            where=where,
            expected=f"at most {MAX_DIMS} for a C++ parser",
        )
    code = DATA_TYPES.get(tensor.dtype)
    if code is None:
        raise ParserError(
            f"layer {name} is {tensor.dtype}, which C++ parsers have no name for",
            where=where,
            expected=", ".join(str(d) for d in DATA_TYPES),
            fix="add a Cast to float32 at the end of the model, or use a Python parser",
        )
    return code


def size_of(network: NetworkInfo) -> tuple[int, int, int]:
    """Return width, height and channels, as native calls take them."""
    return network.width, network.height, network.channels
