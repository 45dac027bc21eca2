"""Parsers and the input initialiser of a C++ library: one table of kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from noria import _native
from noria._core.errors import CustomLibraryError, ParserError
from noria._core.notices import Notice, note_once
from noria.binary.symbol_names import demangled
from noria.custom.box_layout import LayoutDecision
from noria.custom.validate import (
    MAX_ATTRIBUTES,
    MAX_MAP_PIXELS,
    MAX_MASK_PIXELS,
    MAX_MASKS_PIXELS,
    MAX_OBJECTS,
    NO_MASK,
    DecodedBoxes,
    masks_too_large,
    too_many,
)
from noria.meta import (
    Classification,
    ClassifierParams,
    DetectionParams,
    Detections,
    Layer,
    NetworkInfo,
    Segmentation,
    SegmentationParams,
)
from noria.meta.detections import FloatArray

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


class _WithThresholds(CppFunction):
    """A function that takes classes and thresholds; their vectors outlive the call."""

    def __init__(self, native: Any, where: str, decisions: list[Notice]) -> None:
        super().__init__(native, where)
        self._decisions = decisions
        self._params: DetectionParams | None = None
        self._warned_of_class = False

    def set_params(self, params: DetectionParams) -> None:
        """Hand over the thresholds if they changed."""
        if params is not self._params:
            pre = params.per_class_threshold.tolist()
            post = params.per_class_post_threshold.tolist() or [0.0] * len(pre)
            self.native.set_params(params.num_classes, pre, post)
            self._params = params

    def without_wild_classes(self, detections: Detections) -> Detections:
        """Drop boxes with class ids beyond the signed range.

        Ids are unsigned in C++, and no configuration has as many classes. Source: custom-library
        spec 2.3.
        """
        ids = detections.class_ids
        keep = ids >= 0
        if not self._warned_of_class:
            self._warned_of_class = True
            message = (
                f"{len(ids) - int(np.count_nonzero(keep))} of {len(ids)} boxes of a frame had "
                f"class ids above 2147483647, the first {int(ids[~keep][0]) & 0xFFFFFFFF}, and "
                "were dropped as classes that are not configured"
            )
            self._decisions.append(Notice("warning", message, where=self.where))
        return detections.select(keep)


class CppBoxParser(_WithThresholds):
    """One detector parser of a C++ library, its values not yet checked."""

    def __init__(
        self,
        native: Any,
        where: str,
        layout: LayoutDecision,
        decisions: list[Notice],
        *,
        rotation: bool,
    ) -> None:
        super().__init__(native, where, decisions)
        self._layout = layout
        self._rotation = rotation

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> DecodedBoxes:
        """Call the function on one frame.

        Raises:
            ParserReturnedFalseError: it returned false.
            ParserError: it threw, returned something that cannot be boxes, or a layer cannot be
                passed to it.
        """
        layout = self._layout
        words = layout.current // 4 if layout.certain and layout.current else 0
        rotation = self._rotation and words == 7

        def call(tensors: Tensors, types: list[int]) -> Any:
            self.set_params(params)
            return self.native.call(tensors, types, *size_of(network), words, rotation, MAX_OBJECTS)

        found: Any = self.invoke(layers, call)
        if len(found) == 2:
            data, capacity = found
            found = self._decoded(data, capacity, words, network, params)
        boxes, scores, ids, angles, sound = found
        detections = Detections.unchecked(boxes, scores, ids, angles=angles)
        if not sound and int(ids.min()) < 0:
            detections = self.without_wild_classes(detections)
        return DecodedBoxes(detections, sound)

    def _decoded(
        self,
        data: npt.NDArray[np.uint8],
        capacity: int,
        words: int,
        network: NetworkInfo,
        params: DetectionParams,
    ) -> Any:
        """Decode boxes of an uncertain layout, or that are too many or not sound."""
        if data.size > 28 * MAX_OBJECTS:
            raise too_many(data.size // (4 * words or 28), self.where, exact=words > 0)
        layout = 28
        if data.size:
            layout = self._layout.of_frame(data, capacity, network, params, self.where)
        return _native.decode_boxes(data, layout // 4, self._rotation)


class CppInstanceParser(_WithThresholds):
    """One instance parser of a C++ library, its values not yet checked.

    Masks are copied, and the library's deleted at once.
    """

    check_macro = "CHECK_CUSTOM_INSTANCE_MASK_PARSE_FUNC_PROTOTYPE"

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> DecodedBoxes:
        """Call the function on one frame.

        Raises:
            ParserReturnedFalseError: it returned false.
            ParserError: it threw, returned something that cannot be objects, masks of absurd size,
                or a layer cannot be passed to it.
        """

        def call(tensors: Tensors, types: list[int]) -> Any:
            self.set_params(params)
            return self.native.call(
                tensors, types, *size_of(network), MAX_OBJECTS, MAX_MASK_PIXELS, MAX_MASKS_PIXELS
            )

        result = self.invoke(layers, call)
        if isinstance(result, int):
            raise too_many(result, self.where)
        boxes, scores, ids, sound, masks, (broken, odd, largest, total) = result
        if largest > MAX_MASK_PIXELS or total > MAX_MASKS_PIXELS:
            raise masks_too_large(largest, total, self.where)
        some = any(mask is not None for mask in masks)
        detections = Detections.unchecked(
            boxes,
            scores,
            ids,
            masks=[NO_MASK if mask is None else mask for mask in masks] if some else None,
        )
        if not sound and int(ids.min()) < 0:
            detections = self.without_wild_classes(detections)
        return DecodedBoxes(detections, sound, broken, odd)


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
