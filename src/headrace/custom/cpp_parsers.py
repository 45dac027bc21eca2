"""Parsers of all kinds, and the input initialiser, of a C++ library; their values are unchecked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from headrace._core import _native
from headrace._core.errors import CustomLibraryError, ParserError
from headrace._core.findings import Finding
from headrace._core.notices import note_once
from headrace._core.types import Array
from headrace.binary.symbol_names import demangled
from headrace.custom.box_layout import LayoutDecision
from headrace.custom.device_tensors import DeviceTensors
from headrace.custom.ignored_angles import IgnoredAngles
from headrace.custom.mask_keypoints import keypoints_in
from headrace.custom.user_calls import ParserKind
from headrace.custom.validate import (
    MAX_ATTRIBUTES,
    MAX_KEYPOINTS,
    MAX_MAP_PIXELS,
    MAX_MASK_PIXELS,
    MAX_MASKS_PIXELS,
    MAX_OBJECTS,
    NO_MASK,
    DecodedBoxes,
    masks_too_large,
    too_many,
)
from headrace.meta import (
    Classification,
    ClassifierParams,
    DetectionParams,
    Detections,
    Layer,
    NetworkInfo,
    Segmentation,
    SegmentationParams,
)
from headrace.meta.detections import FloatArray

DATA_TYPES = tuple(
    map(np.dtype, (np.float32, np.float16, np.int8, np.int32, np.int64, np.uint8, np.bool_))
)
MAX_DIMS = 8

Tensors: TypeAlias = "list[Array]"


class ParserReturnedFalseError(ParserError):
    """The parser returned false: there is no result for this item."""


class CppParser(ABC):
    """Base of the parsers of all kinds.

    Attributes:
        kind: as errors name it; of `entry_points.KINDS`.
        nothing: the meaning of a result that is missing.
        check_macro: checks such a function in its source.
        where: library and function, as errors name it.
        lock: held from handing over names and thresholds to the end of the call they are for.

    Args:
        native: the function.
        layout: bytes of a box.
        rotation: True if the function sets the angle of boxes.
        on_device: copies what the function is given to the GPU; None for one of main memory.
    """

    kind: ClassVar[str]
    nothing: ClassVar[str] = "the frame counts as one without objects"
    check_macro: ClassVar[str] = "CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE"

    def __init__(
        self,
        native: Any,
        where: str,
        decisions: list[Finding],
        *,
        layout: LayoutDecision,
        rotation: bool,
        on_device: DeviceTensors | None = None,
    ) -> None:
        self.native = native
        self.where = where
        self.lock = _native.CallLock()
        self._decisions = decisions
        self._layout = layout
        self._rotation = rotation
        self._lend = None if on_device is None else on_device.lent
        self._names: tuple[str, ...] | None = None

    def __call__(self, layers: Mapping[str, Layer], network: NetworkInfo, params: Any) -> Any:
        """Call the function on one item, one call at a time.

        Args:
            layers: outputs of the network, as the mapping has them when the call begins.
            network: input of the network.
            params: of the parser.

        Raises:
            ParserReturnedFalseError: it returned false.
            ParserError: it threw, left something that its signature does not allow, or a layer
                cannot be passed to it.
        """
        layers = dict(layers)
        tensors = [layer.data for layer in layers.values()]
        for i, tensor in enumerate(tensors):
            if not tensor.flags.carray:  # parsers may decode in place: never into others' memory
                tensors[i] = np.require(tensor, requirements=("C", "A", "W"))
        with self.lock:
            if self.lock.inside:
                raise called_in_call(self.where)
            self.lock.inside = True
            try:
                if self._names != (names := tuple(layers)):
                    # Binding indices count inputs and outputs together; the input is 0.
                    self.native.set_layers(list(names), list(range(1, len(names) + 1)))
                    self._names = names
                lent = nullcontext(tensors) if self._lend is None else self._lend(tensors)
                with lent as arrays:
                    parsed = self._call(arrays, network, params)
            except (_native.CustomCodeError, _native.MissingFunctionError) as error:
                raise failed_call(error, "the parser", self.where) from error
            except _native.CustomResultError as error:
                fix = f"is it a function of another kind? {self.check_macro} tells"
                raise ParserError(str(error), where=self.where, fix=fix) from error
            except (ValueError, BufferError):
                require_known_types(layers, tensors, self.where)
                raise
            finally:
                self.lock.inside = False
        if parsed is None:
            text = f"the parser returned false: {self.nothing}"
            raise ParserReturnedFalseError(text, where=self.where)
        return self._result(parsed, tensors, network, params)

    @abstractmethod
    def _call(self, tensors: Tensors, network: NetworkInfo, params: Any) -> Any:
        """Call the native function; None if that returned false."""

    @abstractmethod
    def _result(self, parsed: Any, tensors: Tensors, network: NetworkInfo, params: Any) -> Any:
        """Make the parser's result of the native one."""


class CppBoxParser(CppParser):
    """One detector parser."""

    kind = "detector"
    _params: DetectionParams | None = None
    _warned_of_class = False
    _ignored: IgnoredAngles | None = None

    @property
    def _takes_angles(self) -> bool:
        """True while angles are used, or looked at: whether the parser sets them."""
        if self._ignored is None:
            self._ignored = IgnoredAngles()
        return self._rotation or self._ignored.looking

    def _set_params(self, params: DetectionParams) -> None:
        """Hand over the thresholds if they changed; their vectors outlive the call."""
        if params is not self._params:
            pre = params.per_class_threshold.tolist()
            post = params.per_class_post_threshold.tolist() or [0.0] * len(pre)
            self.native.set_params(params.num_classes, pre, post)
            self._params = params

    def _call(self, tensors: Tensors, network: NetworkInfo, params: DetectionParams) -> Any:
        self._set_params(params)
        layout = self._layout
        words = layout.current // 4 if layout.certain and layout.current else 0
        rotation = words == 7 and self._takes_angles
        boxes = self.native.call_detector(tensors, size_of(network), words, rotation, MAX_OBJECTS)
        return None if boxes is None else (boxes, words)

    def _result(
        self, parsed: Any, tensors: Tensors, network: NetworkInfo, params: DetectionParams
    ) -> DecodedBoxes:
        boxes, words = parsed
        if len(boxes) == 2:  # of an uncertain layout, or too many, or not sound
            data, capacity = boxes
            if data.size > 28 * MAX_OBJECTS:
                raise too_many(data.size // (4 * words or 28), self.where, exact=words > 0)
            layout = 28
            if data.size:
                layout = self._layout.of_frame(data, capacity, network, params, self.where)
            boxes = _native.decode_boxes(data, layout // 4, self._takes_angles)
        return self._decoded(boxes, None)

    def _decoded(
        self,
        arrays: Any,
        masks: list[FloatArray] | None,
        *odd: int,
        keypoints: FloatArray | None = None,
        raw_masks: list[FloatArray] | None = None,
    ) -> DecodedBoxes:
        """Make detections of arrays; drop boxes with a class id beyond the signed range.

        Ids are unsigned in C++, and no configuration has as many classes. Source: custom-library
        spec 2.3.
        """
        boxes, scores, ids, angles, sound = arrays
        if angles is not None and not self._rotation:
            finding = self._ignored.look(angles, scores, self.where) if self._ignored else None
            self._decisions += [finding] if finding else []
            angles = None
        detections = Detections.unchecked(
            boxes,
            scores,
            ids,
            masks=masks,
            angles=angles,
            keypoints=keypoints,
            raw_masks=raw_masks,
        )
        if keypoints is not None:
            sound = sound and bool(np.isfinite(keypoints).all())
        if sound or int(ids.min()) >= 0:
            return DecodedBoxes(detections, sound, *odd)
        keep = ids >= 0
        if not self._warned_of_class:
            self._warned_of_class = True
            message = (
                f"{len(ids) - int(np.count_nonzero(keep))} of {len(ids)} boxes of a frame had "
                f"class ids above 2147483647, the first {int(ids[~keep][0]) & 0xFFFFFFFF}, and "
                "were dropped as classes that are not configured"
            )
            self._decisions.append(Finding("parser-results", "warning", message, self.where))
        return DecodedBoxes(detections.select(keep), sound, *odd)


class CppInstanceParser(CppBoxParser):
    """One instance parser. Masks are copied, and the library's deleted at once.

    Masks that are keypoints by all evidence become such.
    """

    kind = "instance segmentation"
    check_macro = "CHECK_CUSTOM_INSTANCE_MASK_PARSE_FUNC_PROTOTYPE"

    def _call(self, tensors: Tensors, network: NetworkInfo, params: DetectionParams) -> Any:
        self._set_params(params)
        limits = MAX_OBJECTS, MAX_MASK_PIXELS, MAX_MASKS_PIXELS, 3 * MAX_KEYPOINTS
        return self.native.call_instances(tensors, size_of(network), *limits)

    def _result(
        self, parsed: Any, tensors: Tensors, network: NetworkInfo, params: DetectionParams
    ) -> DecodedBoxes:
        if isinstance(parsed, int):
            raise too_many(parsed, self.where)
        boxes, masks, (broken, odd, largest, total) = parsed
        if largest > MAX_MASK_PIXELS or total > MAX_MASKS_PIXELS:
            raise masks_too_large(largest, total, self.where)
        if odd and not broken and all(mask is None or mask.ndim == 1 for mask in masks):
            keypoints = keypoints_in(masks, network)
            if keypoints is not None:
                return self._with_keypoints(boxes, keypoints, masks)
        kept = [NO_MASK if mask is None or mask.ndim == 1 else mask for mask in masks]
        some = any(mask.size for mask in kept)
        return self._decoded(boxes, kept if some else None, broken, odd)

    def _with_keypoints(
        self, boxes: object, keypoints: FloatArray, masks: Sequence[FloatArray | None]
    ) -> DecodedBoxes:
        text = (
            f"its objects have {keypoints.shape[1]} keypoints in the place of a mask; "
            "mask-content=mask leaves them out"
        )
        note_once(self._decisions, Finding("parser-results", "info", text, self.where))
        raw = [NO_MASK.reshape(-1) if mask is None else mask.reshape(-1) for mask in masks]
        return self._decoded(boxes, None, keypoints=keypoints, raw_masks=raw)


class CppClassifierParser(CppParser):
    """One classifier parser. Labels are copied, and the library's freed at once."""

    kind = "classifier"
    nothing = "the item has no attributes"
    check_macro = "CHECK_CUSTOM_CLASSIFIER_PARSE_FUNC_PROTOTYPE"

    def _call(self, tensors: Tensors, network: NetworkInfo, params: ClassifierParams) -> Any:
        limits = params.threshold, MAX_ATTRIBUTES
        return self.native.call_classifier(tensors, size_of(network), *limits)

    def _result(self, parsed: Any, *_: object) -> Classification:
        if isinstance(parsed, int):
            raise ParserError(
                f"the parser returned {parsed:,} attributes for one item",
                where=self.where,
                expected=f"at most {MAX_ATTRIBUTES:,}",
            )
        return Classification(*parsed)


class CppSegmentationParser(CppParser):
    """One segmentation parser. The class map has the size of the network input."""

    kind = "segmentation"
    nothing = "the item has no class map"
    check_macro = "CHECK_CUSTOM_SEM_SEGMENTATION_PARSE_FUNC_PROTOTYPE"

    @staticmethod
    def new_map(height: int, width: int) -> npt.NDArray[np.int32]:
        """Make a map to be filled, (height, width) int32.

        The original's is not initialised; a function that leaves pixels out means none (-1) of
        them.
        """
        return np.full((height, width), -1, np.int32)

    def _call(self, tensors: Tensors, network: NetworkInfo, params: SegmentationParams) -> Any:
        if network.width * network.height > MAX_MAP_PIXELS:
            raise ParserError(
                f"a class map of {network.width}x{network.height} pixels",
                where=self.where,
                expected=f"at most {MAX_MAP_PIXELS:,} pixels",
            )
        class_map = self.new_map(network.height, network.width)
        thresholds = params.threshold, params.num_classes
        address = self.native.call_segmentation(tensors, size_of(network), *thresholds, class_map)
        return None if address is None else (class_map, address)

    def _result(self, parsed: Any, tensors: Tensors, *_: object) -> Segmentation:
        class_map, address = parsed
        return Segmentation(class_map, self._probabilities(address, tensors) if address else None)

    def _probabilities(self, address: int, tensors: Tensors) -> FloatArray | None:
        """Return the layer that a pointer points into, from there on.

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
        note_once(self._decisions, Finding("parser-results", "warning", text, self.where))
        return None


PARSERS: dict[ParserKind, type[CppParser]] = {
    "bbox": CppBoxParser,
    "instance": CppInstanceParser,
    "classifier": CppClassifierParser,
    "segmentation": CppSegmentationParser,
}


def cpp_initializer(native: Any, where: str) -> Any:
    """Give the library's function the signature of Python's: `(layers, network, max_batch)`.

    It returns what the function said, and raises CustomLibraryError if that throws.
    """

    def initialize(layers: dict[str, Array], network: NetworkInfo, max_batch: int) -> bool:
        names = list(layers)
        # Binding indices count all inputs; the image is 0. Dimensions are without the batch.
        native.set_layers(names, list(range(1, len(names) + 1)), True)
        firsts = [array[0] if array.ndim > 1 else array[:1] for array in layers.values()]
        try:
            return bool(native.call_initializer(firsts, size_of(network), max_batch))
        except _native.CustomCodeError as error:
            raise CustomLibraryError(f"the function threw {error}", where=where) from error
        except _native.MissingFunctionError as error:
            raise failed_call(error, "the function", where) from error
        except (ValueError, BufferError):
            require_known_types(layers, firsts, where)
            raise

    return initialize


def called_in_call(where: str) -> ParserError:
    """Make the error for a call from inside a call, in the same thread."""
    return ParserError(
        "the parser was called again from inside its own call (same thread)",
        where=where,
        fix="a signal handler or a finaliser does so: it can set a flag for the program instead",
    )


def failed_call(error: Exception, function: str, where: str) -> ParserError:
    """Make the error for code that threw, or called a function of a library not installed.

    Args:
        error: a `CustomCodeError`, or a `MissingFunctionError`: its text is `function of library`.
        function: that was called, in words.
        where: library and function of the user.
    """
    if isinstance(error, _native.CustomCodeError):
        data = {"exception": str(error).partition(": ")[0]}
        return ParserError(f"{function} threw {error}", where=where, data=data)
    return ParserError(
        f"the code called {demangled(str(error))}, which is not installed on this machine",
        where=where,
        fix=[
            "code that needs NVIDIA's libraries while a model runs cannot run without them",
            "headrace inspect shows what a library asks of them",
        ],
    )


def require_known_types(names: Mapping[str, object], tensors: Tensors, where: str) -> None:
    """Refuse layers that C++ has no name for.

    Raises:
        ParserError: one is of such a type, or has too many axes.
    """
    for name, tensor in zip(names, tensors, strict=True):
        if tensor.ndim > MAX_DIMS:
            raise ParserError(
                f"layer {name} has {tensor.ndim} axes",
                where=where,
                expected=f"at most {MAX_DIMS} for a C++ parser",
            )
        if tensor.dtype not in DATA_TYPES:
            raise ParserError(
                f"layer {name} is {tensor.dtype}, which C++ parsers have no name for",
                where=where,
                expected=", ".join(map(str, DATA_TYPES)),
                fix="add a Cast to float32 at the end of the model, or use a Python parser",
            )


def size_of(network: NetworkInfo) -> tuple[int, int, int]:
    """Return width, height and channels, as native calls take them."""
    return network.width, network.height, network.channels
