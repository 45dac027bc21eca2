"""C++ shared libraries as custom libraries."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from noria import _native
from noria.custom.box_layout import LayoutDecision
from noria.custom.inputs import InputInitializer
from noria.custom.library import compile_command
from noria.custom.load_errors import check_header, load_failed
from noria.custom.names import missing_name_hints, parser_like
from noria.custom.validate import MAX_OBJECTS, CheckedParser, too_many
from noria.custom.validate_maps import CheckedClassifier, CheckedSegmentation
from noria.errors import CustomLibraryError, ParserError
from noria.meta import DetectionParams, Detections, Layer, NetworkInfo, Space
from noria.notices import Notice

__all__ = ["CppLibrary", "ParserReturnedFalse"]

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

# Parsers of the public collections that set rotation_angle; all others leave it to chance.
SETS_ROTATION = frozenset({"NvDsInferParseCustomYoloV11OBB"})

# By convention, these take device pointers.
_TAKES_DEVICE_POINTERS = re.compile(r"(_cuda|Cuda)$")


class ParserReturnedFalse(ParserError):
    """The parser said that it could not use this frame: there are no objects in it."""


class CppLibrary:
    """The shared library that `custom-lib-path` names, loaded into this process.

    Attributes:
        layout: how many bytes one of its boxes has, and how sure that is.
    """

    kind: Literal["cpp", "python"] = "cpp"

    def __init__(self, path: Path, *, abi: str, rotation: bool | None) -> None:
        hint = compile_command("parser.cpp")
        self.path = path
        self.decisions: list[Notice] = []
        self._rotation = rotation
        self._elf = check_header(path, hint)
        try:
            self._object = _native.SharedObject(str(path))
        except RuntimeError as error:
            reason = str(error)
            raise load_failed(self._elf, reason, hint, _demangled(reason)) from error
        self.layout = LayoutDecision(self._elf, abi, self.decisions)

    def __repr__(self) -> str:
        return f"CppLibrary({str(self.path)!r}, {self.layout})"

    def symbols(self) -> list[str]:
        """Exported functions with a parser's name, sorted."""
        return parser_like(n for n in self._elf.functions() if not n.startswith("_Z"))

    def bbox_parser(self, name: str) -> CheckedParser:
        """The detector parser that the library exports as `name`, its results checked.

        Calls into one library, by whatever thread and parser, happen one after another: existing
        parsers keep state in function statics. The interpreter lock is released meanwhile.

        Raises:
            CustomLibraryError: there is no such function, or it needs a GPU.
        """
        where = f"{self.path}: {name}"
        kind = next((s.kind for s in self._elf.symbols if s.name == name and s.defined), None)
        if kind == 1:
            raise CustomLibraryError(f"{name} is a variable, not a function", where=where)
        if not self._object.has(name):
            raise self._missing(name)
        if _TAKES_DEVICE_POINTERS.search(name):
            others = [n for n in self.symbols() if not _TAKES_DEVICE_POINTERS.search(n)]
            raise CustomLibraryError(
                f"{name} works on GPU memory and cannot run here",
                where=where,
                expected="a parser for host memory",
                fix=missing_name_hints(
                    _TAKES_DEVICE_POINTERS.sub("", name), others, kind="other parsers"
                ),
            )
        rotation = name in SETS_ROTATION if self._rotation is None else self._rotation
        native = _native.DetectorParser(self._object, name)
        parser = CppBoxParser(native, where, self.layout, self.decisions, rotation=rotation)
        return CheckedCppParser(parser, where)

    def instance_parser(self, name: str) -> CheckedParser:
        raise self._not_yet(name)

    def classifier_parser(self, name: str) -> CheckedClassifier:
        raise self._not_yet(name)

    def segmentation_parser(self, name: str) -> CheckedSegmentation:
        raise self._not_yet(name)

    def input_initializer(self) -> InputInitializer | None:
        return None

    def _not_yet(self, name: str) -> CustomLibraryError:
        return CustomLibraryError(
            f"{name} cannot be called yet: of C++ parsers, only those of detectors can",
            where=str(self.path),
        )

    def _missing(self, name: str) -> CustomLibraryError:
        for symbol in self._elf.functions():
            if symbol.startswith("_Z") and f"{len(name)}{name}" in symbol:
                signature = _native.demangle(symbol)
                if signature.partition("(")[0].rpartition("::")[2] == name:
                    return CustomLibraryError(
                        f"{name} has C++ linkage: its name in the library is {symbol}",
                        where=str(self.path),
                        expected="a function with C linkage",
                        fix=[
                            f'write extern "C" before bool {name}(…) in its source, and compile it '
                            "again",
                            f"CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE({name}); reports this at "
                            "compile time",
                        ],
                    )
        functions = [n for n in self._elf.functions() if not n.startswith("_")]
        names, kind = self.symbols(), "parser-like functions"
        if not names and functions:
            names, kind = functions, "functions"
        return CustomLibraryError(
            f"the library has no function {name!r}",
            where=str(self.path),
            fix=missing_name_hints(name, names, kind=f"exported {kind}"),
        )


class CppBoxParser:
    """One detector parser of a C++ library as a `BoxParser`, its values not yet checked."""

    def __init__(
        self,
        native: Any,
        where: str,
        layout: LayoutDecision,
        decisions: list[Notice],
        *,
        rotation: bool,
    ) -> None:
        self._native = native
        self._where = where
        self._layout = layout
        self._decisions = decisions
        self._rotation = rotation
        self._lock = threading.Lock()
        self._params: DetectionParams | None = None
        self._names: tuple[str, ...] | None = None
        self._said_class = False

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> Detections:
        """Call the function on one frame; see `parse`."""
        return self.parse(layers, network, params)[0]

    def parse(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> tuple[Detections, bool]:
        """Call the function on one frame.

        Returns:
            What it found, and whether all values are known to be finite.

        Raises:
            ParserReturnedFalse: it returned false.
            ParserError: it threw, returned what cannot be boxes, or a layer cannot be passed to it.
        """
        tensors = [layer.data for layer in layers.values()]
        types = []
        for i, (name, tensor) in enumerate(zip(layers, tensors, strict=True)):
            code = DATA_TYPES.get(tensor.dtype)
            if code is None or tensor.ndim > MAX_DIMS:
                raise self._cannot_pass(name, tensor)
            types.append(code)
            if not tensor.flags.carray:  # parsers may decode in place: never into others' memory
                tensors[i] = np.require(tensor, requirements=("C", "A", "W"))
        with self._lock:
            self._prepare(layers, params)
            try:
                result = self._native.call(
                    tensors, types, network.width, network.height, network.channels
                )
            except _native.CustomCodeError as error:
                raise ParserError(f"the parser threw {error}", where=self._where) from error
        if result is None:
            raise ParserReturnedFalse(
                "the parser returned false: the frame counts as one without objects",
                where=self._where,
            )
        data, capacity = result
        if data.size > 28 * MAX_OBJECTS:
            raise too_many(data.size // 28, self._where)
        layout = 28
        if data.size:
            layout = self._layout.of_frame(data, capacity, network, params, self._where)
        return self._decode(data, layout)

    def _prepare(self, layers: Mapping[str, Layer], params: DetectionParams) -> None:
        if params is not self._params:
            pre = params.per_class_threshold.tolist()
            post = params.per_class_post_threshold.tolist() or [0.0] * len(pre)
            self._native.set_params(params.num_classes, pre, post)
            self._params = params
        names = tuple(layers)
        if names != self._names:
            # Binding indices count inputs and outputs together; the input is 0.
            self._native.set_layers(list(names), list(range(1, len(names) + 1)))
            self._names = names

    def _decode(self, data: npt.NDArray[np.uint8], layout: int) -> tuple[Detections, bool]:
        boxes, scores, ids, angles, sound = _native.decode_boxes(data, layout // 4, self._rotation)
        detections = _detections(boxes, scores, ids, angles)
        if sound or int(ids.min()) >= 0:
            return detections, sound
        # Unsigned in C++: no configuration has that many classes. Source: spec 2.3.
        keep = ids >= 0
        if not self._said_class:
            self._said_class = True
            message = (
                f"{len(ids) - int(np.count_nonzero(keep))} of {len(ids)} boxes of a frame had "
                f"class ids above 2147483647, the first {int(ids[~keep][0]) & 0xFFFFFFFF}, and "
                "were dropped as classes that are not configured"
            )
            self._decisions.append(Notice("warning", message, where=self._where))
        return detections.select(keep), False

    def _cannot_pass(self, name: str, tensor: npt.NDArray[Any]) -> ParserError:
        if tensor.ndim > MAX_DIMS:
            return ParserError(
                f"layer {name} has {tensor.ndim} axes",
                where=self._where,
                expected=f"at most {MAX_DIMS} for a C++ parser",
            )
        return ParserError(
            f"layer {name} is {tensor.dtype}, which C++ parsers have no name for",
            where=self._where,
            expected=", ".join(str(d) for d in DATA_TYPES),
            fix="add a Cast to float32 at the end of the model, or use a Python parser",
        )


class CheckedCppParser(CheckedParser):
    """`CheckedParser` of a C++ function, whose values were looked at while they were decoded."""

    __slots__ = ("_cpp",)

    def __init__(self, parser: CppBoxParser, where: str) -> None:
        super().__init__(parser, where)
        self._cpp = parser

    def __call__(
        self, layers: Mapping[str, Layer], network: NetworkInfo, params: DetectionParams
    ) -> Detections:
        detections, sound = self._cpp.parse(layers, network, params)
        if sound and len(detections.scores) <= MAX_OBJECTS:
            return detections
        return self.check(detections, params)


def _detections(boxes: Any, scores: Any, class_ids: Any, angles: Any) -> Detections:
    """`Detections` of arrays made here: construction without its checks, once per frame."""
    detections = object.__new__(Detections)
    detections.boxes = boxes
    detections.scores = scores
    detections.class_ids = class_ids
    detections.angles = angles
    detections.masks = None
    detections.space = Space.NETWORK
    return detections


def _demangled(text: str) -> str:
    return re.sub(r"\b_Z\w+", lambda m: str(_native.demangle(m[0])), text)
