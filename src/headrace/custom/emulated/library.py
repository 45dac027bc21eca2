"""A library of another processor, with the faces of one in this process.

`EmulatedObject` and `EmulatedFunction` answer as `_native.SharedObject` and
`_native.CustomFunction` do, so that parsers are made of them in the same way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from headrace._core import _native
from headrace._core.findings import Finding
from headrace._core.types import Array
from headrace.binary.elf import ElfFile
from headrace.binary.entry_points import uses_host
from headrace.binary.tensorrt_line import tensorrt_use
from headrace.custom.emulated.creators import read_creators
from headrace.custom.emulated.emulator import Emulator
from headrace.custom.emulated.messages import (
    Body,
    CallKind,
    NonsenseError,
    Operation,
    Reader,
    Status,
)
from headrace.custom.emulated.plugins import PluginLink
from headrace.custom.emulated.process import EmulatedProcess
from headrace.custom.stand_in_image import AARCH64, FileImage
from headrace.custom.stand_ins import Demand, add_symbol, demands
from headrace.plugins.loading import loading
from headrace.plugins.registry import get_plugin_registry

_TYPES = {"f4": 0, "f2": 1, "i1": 2, "i4": 3, "i8": 4, "u1": 5, "b1": 5}
"""NumPy's type -> `NvDsInferDataType`."""

_MOST_AXES = 8
_RECORD = np.dtype([("box", "u1", 24), ("width", "<u4"), ("height", "<u4"), ("size", "<u4"),
                    ("mask", "<u4")])  # fmt: skip


def stand_in_file(demand: Demand) -> FileImage:
    """Make a stand-in for a library: its functions are refused by their names."""
    image = FileImage(demand.soname, demand.versions, AARCH64)
    for name, version in dict.fromkeys(demand.names):
        add_symbol(image, name, version)
    return image


class EmulatedObject:
    """The library, loaded by the emulated program."""

    def __init__(
        self, path: Path, elf: ElfFile, emulator: Emulator, decisions: list[Finding]
    ) -> None:
        where = str(path)
        self._functions = elf.functions()
        missing = demands(elf)
        self.process = EmulatedProcess(emulator)
        self.link = PluginLink(self.process, where)
        decisions.append(
            Finding(
                "library-emulated",
                "info",
                f"it is built for {elf.machine_name}: {emulator.program.name} runs it, with the "
                f"libraries of {emulator.root}; a call takes five times as long as that of a "
                "library built for this machine, or more",
                where,
            )
        )
        with tempfile.TemporaryDirectory(prefix="headrace-stand-ins-") as folder:
            request = Body().text(where).add("I", len(missing))
            for index, demand in enumerate(missing):
                file = Path(folder, f"{index}-{demand.soname}")
                image = stand_in_file(demand)
                file.write_bytes(image.file())
                request.text(str(file), demand.soname).add("QQQ", image.anchor, *image.records)
                for places in (image.moved, image.begun):
                    request.add(f"I{len(places)}Q", len(places), *places)
            try:
                status, _, answer = self.process.ask(Operation.LOAD, request)
            except _native.CustomCodeError as error:  # and this process is no worker
                raise RuntimeError(f"while it was loaded it threw {error}") from error
        if status is not Status.DONE:
            self.process.close()
            raise RuntimeError(answer.text())
        if missing:
            text = (
                f"not installed: {', '.join(demand.soname for demand in missing)}; headrace stands "
                "in, and a function that calls into it gets an error"
            )
            decisions.append(Finding("library-stand-in", "info", text, where))
        (count,) = answer.numbers("I")
        self.calls = [(answer.text(), answer.text()) for _ in range(min(count, 1000))]
        if tensorrt_use(elf) is not None or uses_host(elf):
            self._register_creators(where, decisions)

    def _register_creators(self, where: str, decisions: list[Finding]) -> None:
        """Register the creators that its initialisers registered there."""
        status, _, answer = self.process.ask(Operation.CREATORS, Body())
        if status is not Status.DONE:
            text = f"its creators of plugins cannot be listed: {answer.text()}"
            decisions.append(Finding("library-while-loaded", "warning", text, where))
            return
        registry = get_plugin_registry()
        with loading(Path(where)):
            for creator in read_creators(answer, self.link):
                registry.register_creator(creator, creator.plugin_namespace)
        (refused,) = answer.numbers("I")
        for _ in range(min(refused, 1000)):
            text = f"while it was loaded: {answer.text()}"
            decisions.append(Finding("library-while-loaded", "warning", text, where))

    def has(self, name: str) -> bool:
        """Whether it exports a function of that name."""
        return name in self._functions

    def function(self, name: str) -> EmulatedFunction:
        """Return an exported function.

        Raises:
            RuntimeError: there is none.
        """
        status, number, answer = self.process.ask(Operation.FUNCTION, Body().text(name))
        if status is not Status.DONE:
            raise RuntimeError(answer.text())
        return EmulatedFunction(self.process, number)


class EmulatedFunction:
    """A function; calls as those of `_native.CustomFunction`."""

    def __init__(self, process: EmulatedProcess, number: int) -> None:
        self._process = process
        self._number = number

    def set_layers(self, names: list[str], bindings: list[int], inputs: bool = False) -> None:
        """Set names and binding indices of the layers of the following calls."""
        body = self._body().add("II", inputs, len(names))
        for name, binding in zip(names, bindings, strict=True):
            body.text(name).add("i", binding)
        self._done(self._process.ask(Operation.LAYERS, body))

    def set_params(self, num_classes: int, pre: list[float], post: list[float]) -> None:
        """Set classes and thresholds of the following calls."""
        body = self._body().add("I", num_classes)
        for values in (pre, post):
            body.add(f"I{len(values)}f", len(values), *values)
        self._done(self._process.ask(Operation.PARAMS, body))

    def call_detector(
        self, tensors: list[Array], size: tuple[int, int, int], words: int, with_angles: bool,
        most: int,
    ) -> Any:  # fmt: skip
        """Call a detector parser; None: it returned false."""
        answer = self._call(CallKind.BOXES, tensors, size, Body().add("Q", 28 * (most + 1)))
        if answer is None:
            return None
        count, capacity = answer.numbers("QQ")
        if not answer.left and count:  # more than are read
            return np.broadcast_to(np.uint8(0), min(count, 1 << 40)), capacity
        data = np.frombuffer(answer.bytes(count), np.uint8).copy()
        if words and not count % (4 * words) and count // (4 * words) <= most:
            boxes = _native.decode_boxes(data, words, with_angles)
            if boxes[4]:
                return boxes
        return data, capacity

    def call_instances(
        self, tensors: list[Array], size: tuple[int, int, int], most: int, most_pixels: int,
        most_together: int, most_values: int,
    ) -> Any:  # fmt: skip
        """Call an instance parser; None: it returned false."""
        limits = Body().add("QQQ", most, 4 * most_pixels, 4 * most_together)
        answer = self._call(CallKind.INSTANCES, tensors, size, limits)
        if answer is None:
            return None
        (count,) = answer.numbers("Q")
        if count > most:
            return count
        boxes = bytearray()
        masks: list[npt.NDArray[np.float32] | None] = []
        broken = odd = largest = total = 0
        for _ in range(count):
            record = np.frombuffer(answer.bytes(_RECORD.itemsize), _RECORD)[0]
            boxes += record["box"].tobytes()
            width, height, nbytes = (int(record[name]) for name in ("width", "height", "size"))
            values = None
            if record["mask"] == 1:
                data = bytes(answer.bytes(nbytes))
                values = np.frombuffer(data[: nbytes // 4 * 4], np.float32).copy()
            pixels = width * height
            if record["mask"] and nbytes != 4 * pixels:
                odd += 1
                fits = (width, height) in (size[:2], (0, 0)) and not nbytes % 4
                masks.append(values if fits and nbytes // 4 <= most_values else None)
                continue
            if record["mask"]:
                largest, total = max(largest, pixels), total + pixels
            if values is not None and not np.isfinite(values).all():
                broken, values = broken + 1, None
            masks.append(None if values is None else values.reshape(height, width))
        found = _native.decode_boxes(np.frombuffer(boxes, np.uint8).copy(), 6, False)
        return found, masks, (broken, odd, largest, total)

    def call_classifier(
        self, tensors: list[Array], size: tuple[int, int, int], threshold: float, most: int
    ) -> Any:
        """Call a classifier parser; None: it returned false."""
        limits = Body().add("fQ", threshold, most)
        answer = self._call(CallKind.ATTRIBUTES, tensors, size, limits)
        if answer is None:
            return None
        (count,) = answer.numbers("Q")
        if count > most:
            return count
        found = []
        for _ in range(count):
            index, value, confidence, labelled = answer.numbers("IIfI")
            found.append((index, value, confidence, answer.text() if labelled else None))
        return found, answer.text()

    def call_segmentation(
        self, tensors: list[Array], size: tuple[int, int, int], threshold: float, classes: int,
        class_map: npt.NDArray[np.int32],
    ) -> int | None:  # fmt: skip
        """Call a segmentation parser; the address of the probabilities, 0 for none."""
        thresholds = Body().add("fI", threshold, classes)
        answer = self._call(CallKind.MAP, tensors, size, thresholds)
        if answer is None:
            return None
        where, index, inside = answer.numbers("IIQ")
        pixels = np.frombuffer(answer.bytes(class_map.nbytes), np.int32)
        np.copyto(class_map, pixels.reshape(class_map.shape))
        if where == 1 and index < len(tensors):
            self._process.take_back(index, tensors[index])
            return int(tensors[index].__array_interface__["data"][0]) + inside
        return 0 if not where else 1  # outside of the tensors

    def call_initializer(
        self, tensors: list[Array], size: tuple[int, int, int], max_batch: int
    ) -> bool:
        """Let the function fill the first entries of batches."""
        # behind each first entry lie the others of its batch
        batches = [as_strided(t, (max_batch, *t.shape), (t.nbytes, *t.strides)) for t in tensors]
        answer = self._call(CallKind.INPUTS, tensors, size, Body().add("I", max_batch), batches)
        for index, batch in enumerate(batches):
            self._process.take_back(index, batch)
        return answer is not None

    def _body(self) -> Body:
        return Body().add("I", self._number)

    def _call(
        self, kind: CallKind, tensors: Sequence[Array], size: tuple[int, int, int], more: Body,
        memory: Sequence[Array] | None = None,
    ) -> Reader | None:  # fmt: skip
        for tensor in tensors:
            if tensor.dtype.str[1:] not in _TYPES or tensor.ndim > _MOST_AXES:
                raise ValueError("an array that C++ has no name for")
        room, places = self._process.share(tensors if memory is None else memory)
        body = self._body().add("IIIIQ", kind, *size, room)
        for tensor, (offset, nbytes) in zip(tensors, places, strict=True):
            shape = tensor.shape or (1,)  # a tensor that is only batch
            body.add(f"II{len(shape)}I", _TYPES[tensor.dtype.str[1:]], len(shape), *shape)
            body.add("QQ", offset, nbytes)
        request = Body().raw(body.data() + more.data())
        status, value, answer = self._process.ask(Operation.CALL, request)
        self._done((status, value, answer))
        return answer if value else None

    @staticmethod
    def _done(answered: tuple[Status, int, Reader]) -> None:
        status, _, answer = answered
        try:
            match status:
                case Status.DONE:
                    return
                case Status.THREW:
                    raise _native.CustomCodeError(answer.text())
                case Status.MISSING:
                    raise _native.MissingFunctionError(answer.text())
                case Status.NO_RESULT:
                    (size,) = answer.numbers("Q")
                    raise _native.CustomResultError(
                        f"the parser returned {size} bytes that are no list of "
                        "NvDsInferInstanceMaskInfo"
                    )
                case Status.FAILED:
                    raise _native.CustomResultError(f"the emulated program: {answer.text()}")
        except NonsenseError as error:
            raise _native.CustomResultError(f"the emulated program gave {error}") from error
