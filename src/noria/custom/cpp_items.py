"""Classifier and segmentation parsers, and the input initialiser, of a C++ library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from noria import _native
from noria._core.errors import CustomLibraryError, ParserError
from noria._core.notices import Notice, note_once
from noria.custom.cpp_function import CppFunction, data_type, missing_function, size_of
from noria.custom.validate_maps import MAX_ATTRIBUTES, MAX_MAP_PIXELS
from noria.meta import (
    Classification,
    ClassifierParams,
    Layer,
    NetworkInfo,
    Segmentation,
    SegmentationParams,
)
from noria.meta.detections import FloatArray


class CppClassifierParser(CppFunction):
    """One classifier parser of a C++ library, its values not yet checked.

    Labels are copied, and the library's freed at once.
    """

    nothing = "the item has no attributes"
    check_macro = "CHECK_CUSTOM_CLASSIFIER_PARSE_FUNC_PROTOTYPE"

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: ClassifierParams
    ) -> Classification:
        """Call the function on one item.

        Raises:
            ParserReturnedFalseError: it returned false.
            ParserError: it threw, returned an absurd number of attributes, or a layer cannot be
                passed to it.
        """

        def call(tensors: list[npt.NDArray[Any]], types: list[int]) -> Any:
            return self.native.call(
                tensors, types, *size_of(network), params.threshold, MAX_ATTRIBUTES
            )

        result = self.invoke(layers, call)
        if isinstance(result, int):
            raise ParserError(
                f"the parser returned {result:,} attributes for one item",
                where=self.where,
                expected=f"at most {MAX_ATTRIBUTES:,}",
            )
        return Classification(*result)


class CppSegmentationParser(CppFunction):
    """One segmentation parser of a C++ library, its values not yet checked."""

    nothing = "the item has no class map"
    check_macro = "CHECK_CUSTOM_SEM_SEGMENTATION_PARSE_FUNC_PROTOTYPE"

    def __init__(self, native: Any, where: str, decisions: list[Notice]) -> None:
        super().__init__(native, where)
        self._decisions = decisions
        self.new_map = new_class_map

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: SegmentationParams
    ) -> Segmentation:
        """Call the function on one item. The class map has the size of the network input.

        Raises:
            ParserReturnedFalseError: it returned false.
            ParserError: it threw, or a layer cannot be passed to it.
        """
        if network.width * network.height > MAX_MAP_PIXELS:
            raise ParserError(
                f"a class map of {network.width}x{network.height} pixels",
                where=self.where,
                expected=f"at most {MAX_MAP_PIXELS:,} pixels",
            )
        class_map = self.new_map(network.height, network.width)
        passed: list[npt.NDArray[Any]] = []

        def call(tensors: list[npt.NDArray[Any]], types: list[int]) -> Any:
            passed.extend(tensors)
            return self.native.call(
                tensors, types, network.channels, params.threshold, params.num_classes, class_map
            )

        address = self.invoke(layers, call)
        return Segmentation(class_map, self._probabilities(address, passed) if address else None)

    def _probabilities(self, address: int, tensors: list[npt.NDArray[Any]]) -> FloatArray | None:
        """The layer that a pointer points into, from there on.

        Memory of the library's own is not looked at: nothing says how large it is.
        """
        for tensor in tensors:
            start = int(tensor.__array_interface__["data"][0])
            if start <= address < start + tensor.nbytes:
                if address == start and tensor.dtype == np.float32:
                    return tensor
                rest = tensor.reshape(-1).view(np.uint8)[address - start :]
                return rest[: len(rest) // 4 * 4].view(np.float32)
        text = "classProbabilityMap points outside of the output layers: probabilities are left out"
        note_once(self._decisions, "warning", text, self.where)
        return None


def new_class_map(height: int, width: int) -> npt.NDArray[np.int32]:
    """(height, width) int32 to be filled.

    The original's is not initialised; a function that leaves pixels out means none (-1) of them.
    """
    return np.full((height, width), -1, np.int32)


def cpp_initializer(native: Any, where: str) -> Any:
    """The library's function with the signature that Python's has: `(layers, network, max_batch)`.

    It returns what the function said, and raises CustomLibraryError if that throws.
    """

    def initialize(
        layers: dict[str, npt.NDArray[Any]], network: NetworkInfo, max_batch: int
    ) -> bool:
        names = list(layers)
        # Binding indices count all inputs; the picture is 0. Dimensions are without the batch.
        native.set_layers(names, list(range(1, len(names) + 1)), True)
        firsts = [array[0] if array.ndim > 1 else array[:1] for array in layers.values()]
        types = [data_type(name, item, where) for name, item in zip(names, firsts, strict=True)]
        try:
            return bool(native.call(firsts, types, *size_of(network), max_batch))
        except _native.CustomCodeError as error:
            raise CustomLibraryError(f"the function threw {error}", where=where) from error
        except _native.MissingFunctionError as error:
            raise missing_function(error, where) from error

    return initialize
