"""Plugins of a library of another processor, with the faces of native ones in this process.

`EmulatedPlugin` answers as `_native.ForeignPluginV2` and `_native.ForeignPluginV3` do, so that the
classes of `headrace.trt.host.plugins` are made of it in the same way. Each method is a request to
the emulated program, which calls the plugin; tensors are copied there and back.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from headrace._core import _native
from headrace._core.errors import PluginError
from headrace._core.types import Array
from headrace.binary.gpu_code import gpu_evidence
from headrace.custom.emulated.messages import Body, NonsenseError, Operation, Reader, Status
from headrace.custom.emulated.plugin_data import descs_data, read_axes, read_exprs, shapes_data
from headrace.custom.emulated.process import EmulatedProcess
from headrace.plugins.expressions import IDimensionExpr
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.memory import lent_bytes
from headrace.plugins.types import PluginTensorDesc
from headrace.trt.host.forwarding import Row, fields_to
from headrace.trt.host.plugins import plugin_v2, plugin_v3

_V3: Final = 10
_OF_HOST, _NONE = -2, -1
_NUMBERS = (
    "aliased_input", "configure", "detach", "dynamic_workspace", "format_limit", "initialize",
    "input_broadcast", "on_shape_change", "output_broadcast", "output_count", "output_type",
    "serialization_size", "set_tactic", "supports_combination", "supports_format", "terminate",
    "workspace",
)  # fmt: skip
_TEXTS = ("get_namespace", "metadata", "name", "timing_cache_id", "type", "version")


class PluginLink:
    """The process of a library's plugins; one calls at a time.

    Attributes:
        library: the file.
        process: the emulated one.
        for_gpu: whether its plugins work in a GPU's memory.
    """

    def __init__(self, process: EmulatedProcess, library: str) -> None:
        self.library = library
        self.for_gpu = gpu_evidence(Path(library)) is not None
        self.process = process
        self._lock = threading.RLock()
        self._dropped: list[int] = []  # plugins that nobody holds any more

    def ask(self, method: str, body: Body) -> Reader:
        """Call a method, and return its answer.

        Raises:
            CustomCodeError, MissingFunctionError, ValueError: as native plugins do.
        """
        with self._lock:
            while self._dropped:
                number = self._dropped.pop()
                self.process.ask(Operation.PLUGIN, Body().text("destroy").add("I", number))
            return self.request(Operation.PLUGIN, Body().text(method).raw(body.data()))

    def request(self, operation: Operation, body: Body) -> Reader:
        """Send a request that calls the library, and return its answer.

        Raises:
            CustomCodeError, MissingFunctionError, ValueError: as native calls do.
        """
        status, _, answer = self.process.ask(operation, body)
        if status is Status.DONE:
            return answer
        text = answer.text()
        if status is Status.MISSING:
            raise _native.MissingFunctionError(text)
        if status is Status.FAILED:
            raise ValueError(text)
        raise _native.CustomCodeError(text)

    def enqueue(
        self, method: str, body: Body, inputs: Sequence[int], outputs: Sequence[int], scratch: int
    ) -> int:
        """Call a plugin with copies of the memory at these addresses, and copy the results back."""
        arrays = [_memory(address) for address in (*inputs, *outputs, scratch)]
        with self._lock:
            room, places = self.process.share(arrays)
            body.add("QII", room, len(inputs), len(places))
            for place in places:
                body.add("QQ", *place)
            answer = self.ask(method, body)
            for index, array in enumerate(arrays[len(inputs) : -1], len(inputs)):
                self.process.take_back(index, array)
        return int(answer.numbers("q")[0])

    def memory(self, address: int, size: int) -> bytes:
        """Copy memory of the program."""
        answer = self.request(Operation.MEMORY, Body().add("QQ", address, size))
        return bytes(answer.bytes(answer.left))

    def drop(self, number: int) -> None:
        """Let the program destroy a plugin before its next call."""
        self._dropped.append(number)

    def create(
        self, index: int, name: str, fields: PluginFieldCollection, phase: int, third: bool
    ) -> Any:
        """Let the creator of that index make a plugin; None: it made none."""
        rows = fields_to(fields)
        body = Body().add("I", index).text(name).add("iI", phase, len(rows))
        for field, kind, length, data in rows:
            body.text(field).add("iiI", kind, length, data is not None)
            if data is not None:
                body.add("I", len(data)).raw(data)
        return self._wrapped(self.ask("create", body), third)

    def deserialize(self, index: int, name: str, data: bytes) -> Any:
        """Let the creator of that index make a plugin of its bytes; None: it made none."""
        body = Body().add("I", index).text(name).add("I", len(data)).raw(data)
        return self._wrapped(self.ask("deserialize", body), third=False)

    def _wrapped(self, answer: Reader, third: bool) -> Any:
        (generation,) = answer.numbers("i")
        if generation == _NONE:
            return None
        (number,) = answer.numbers("I")
        if generation not in ((_V3,) if third else range(4)):
            raise NonsenseError(f"a plugin of generation {generation}")
        if not number:
            return None
        native = EmulatedPlugin(self, number, generation)
        return plugin_v3(native) if third else plugin_v2(native)


def _memory(address: int) -> Array:
    """The memory that is lent at an address to the plugin that runs."""
    size = lent_bytes(address)
    return np.ndarray(size, np.uint8, _native.memory_view(address, size, True) if size else b"")


class EmulatedPlugin:
    """A plugin of the emulated program; methods as those of native ones.

    Attributes:
        generation: 0 to 3 of the V2 line, 10 of the third generation.
        address: its number there.
    """

    image = 0
    """No library of this process holds its code."""

    def __init__(
        self, link: PluginLink, number: int, generation: int, *, owned: bool = True
    ) -> None:
        self._link: PluginLink | None = link
        self._owned = owned
        self.address = number
        self.generation = generation
        self.library = link.library

    def __del__(self) -> None:
        if (link := getattr(self, "_link", None)) is not None and self._owned:
            link.drop(self.address)

    def __getattr__(self, name: str) -> Any:
        if name in _NUMBERS or name in _TEXTS:
            return lambda *arguments: self._plain(name, arguments)
        raise AttributeError(name)

    def is_of(self, _caller: int) -> bool:
        """No code of this process is of its library."""
        return False

    def is_of_link(self, link: PluginLink) -> bool:
        """Whether it is in that library."""
        return self._link is link

    def _ask(self, method: str, body: Body | None = None) -> Reader:
        if self._link is None:
            raise ValueError("the plugin was destroyed already")
        more = b"" if body is None else body.data()
        return self._link.ask(method, Body().add("I", self.address).raw(more))

    def _plain(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Methods that take numbers, descriptors or lists of numbers, and give one result."""
        body = Body()
        if name == "supports_combination":
            position, descs, inputs = arguments
            body.add("ii", position, inputs).raw(descs_data(descs))
        elif name in ("output_type", "output_broadcast"):
            index, values = arguments
            kind = "i" if name == "output_type" else "B"
            body.add(f"iI{len(values)}{kind}", index, len(values), *map(int, values))
        else:
            for one in arguments:
                body.add("i", one) if isinstance(one, int) else body.raw(descs_data(one))
        answer = self._ask(name, body)
        if name in _TEXTS:
            return answer.name() if answer.numbers("I")[0] else None
        number = answer.numbers("q")[0] if answer.left else None
        asked = name.startswith("supports_") or name.endswith("_broadcast")
        return bool(number) if asked else number

    def class_name(self) -> str:
        """Name of its class in the library; empty for one without names (-fno-rtti)."""
        return self._ask("class_name").text()

    def destroy(self) -> None:
        """Destroy the plugin; it is gone afterwards."""
        self._ask("destroy")
        self._link = None

    def clone(self) -> EmulatedPlugin | None:
        """A copy of the plugin."""
        return self._made(self._ask("clone"))

    def attach(self, *context: object) -> EmulatedPlugin | None:
        """Attach to an empty context; a plugin of the third generation gives its clone for it."""
        answer = self._ask("attach")
        return self._made(answer) if context else None

    def _made(self, answer: Reader) -> EmulatedPlugin | None:
        (number,) = answer.numbers("I")
        if not number or self._link is None:
            return None
        if number == self.address:
            return self
        return EmulatedPlugin(self._link, number, self.generation)

    def set_namespace(self, text: str) -> None:
        """Set the namespace in the registry."""
        self._ask("set_namespace", Body().text(text))

    def serialize(self, fill: int = 0) -> bytes:
        """Its bytes; memory is filled with `fill` before."""
        answer = self._ask("serialize", Body().add("i", fill))
        return bytes(answer.bytes(answer.left))

    def output_dims(self, index: int, shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
        """Axes of an output, without the batch."""
        return read_axes(self._ask("output_dims", Body().add("i", index).raw(shapes_data(shapes))))

    def configure_with_format(
        self, ins: Sequence[Sequence[int]], outs: Sequence[Sequence[int]], kind: int, format: int,
        most: int,
    ) -> None:  # fmt: skip
        """Tell shapes, type, format and the largest batch."""
        body = Body().raw(shapes_data(ins)).raw(shapes_data(outs)).add("iii", kind, format, most)
        self._ask("configure_with_format", body)

    def configure_ext(
        self, ins: Sequence[PluginTensorDesc], outs: Sequence[PluginTensorDesc],
        in_broadcast: Sequence[bool], out_broadcast: Sequence[bool], format: int, most: int,
    ) -> None:  # fmt: skip
        """Tell descriptors, tensors that all items share, format and the largest batch."""
        body = Body().raw(descs_data(ins)).raw(descs_data(outs))
        for flags in (in_broadcast, out_broadcast):
            body.add(f"I{len(flags)}B", len(flags), *flags)
        self._ask("configure_ext", body.add("ii", format, most))

    def output_types(self, types: Sequence[int], outputs: int) -> tuple[int, list[int]]:
        """Status, and the type of each output."""
        values = Body().add(f"II{len(types)}i", outputs, len(types), *map(int, types))
        answer = self._ask("output_types", values)
        return int(answer.numbers("q")[0]), list(answer.numbers(f"{outputs}i"))

    def output_exprs(self, *arguments: Any) -> Any:
        """Axes of an output (V2), or the status and those of all outputs (third generation)."""
        if self.generation == _V3:
            inputs, shapes, builder, outputs = arguments
            body, given = Body().add("I", outputs), [inputs, shapes]
        else:
            index, inputs, builder = arguments
            body, given, outputs = Body().add("i", index), [inputs], 1
        leaves: list[IDimensionExpr] = []
        for many in given:
            body.add("I", len(many))
            for exprs in many:
                body.add("I", len(exprs))
                for axis in exprs:
                    constant = axis.is_constant()
                    number = axis.get_constant_value() if constant else len(leaves)
                    body.add("Iq", constant, number)
                    leaves.append(axis)
        answer = self._ask("output_exprs", body)
        status = int(answer.numbers("q")[0]) if self.generation == _V3 else 0
        found = [read_exprs(answer, leaves, builder) for _ in range(outputs)]
        return (status, found) if self.generation == _V3 else found[0]

    def tactics(self) -> tuple[int, list[int]]:
        """Status, and the tactics."""
        answer = self._ask("tactics")
        status, count = answer.numbers("qI")
        return status, list(answer.numbers(f"{count}i"))

    def has_build(self) -> bool:
        """Whether it has the interface for building."""
        return bool(self._ask("has_build").numbers("q")[0] & 1)

    def has_runtime(self) -> bool:
        """Whether it has the interface for running."""
        return not self._ask("has_build").numbers("q")[0] & 2

    def fields_to_serialize(self) -> list[Row]:
        """Fields that the engine keeps: name, type, number of elements, bytes."""
        answer = self._ask("fields_to_serialize")
        rows: list[Row] = []
        for _ in range(answer.numbers("I")[0]):
            answer.numbers("I")
            name, (kind, length, there) = answer.name(), answer.numbers("iiI")
            data = bytes(answer.bytes(answer.numbers("I")[0])) if there else None
            rows.append((name, kind, length, data))
        return rows

    def dynamic_enqueue(self, *arguments: Any) -> int:
        """Compute: descriptors of inputs and outputs, addresses of both, workspace, stream."""
        in_descs, out_descs, *memory = arguments
        return self._enqueue(
            "dynamic_enqueue", descs_data(in_descs) + descs_data(out_descs), *memory
        )

    def enqueue(self, *arguments: Any) -> int:
        """Compute: as `dynamic_enqueue`; of the V2 line the batch stands for the descriptors."""
        if self.generation == _V3:
            return self.dynamic_enqueue(*arguments)
        batch, *memory = arguments
        return self._enqueue("enqueue", struct.pack("<i", batch), *memory)

    def _enqueue(
        self, method: str, head: bytes, inputs: Sequence[int], outputs: Sequence[int],
        scratch: int, _stream: int,
    ) -> int:  # fmt: skip
        if self._link is None:
            raise ValueError("the plugin was destroyed already")
        if self._link.for_gpu:
            file, kind = Path(self.library).name, "name" if self.generation == _V3 else "type"
            named = self.class_name().rpartition("::")[2] or self._plain(kind, ())
            raise PluginError(
                f"enqueue of {named} runs on a GPU: it is code of {file}, which is "
                "built for another processor",
                code="plugin-for-gpu",
                expected="plugins that compute on the processor",
                fix=[
                    f"let a file of the same plugins stand for it: --plugins {file}=FILE",
                    "or compile its source on this machine: headrace compile",
                ],
            )
        body = Body().add("I", self.address).raw(head)
        return self._link.enqueue(method, body, inputs, outputs, scratch)
