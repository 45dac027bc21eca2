"""TensorRT's package as far as headrace's backend calls it; ONNX Runtime computes on the CPU.

An engine's bytes are the model's. Device memory is the stand-in driver's: addresses of the host.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import onnxruntime as ort

_KINDS = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}


class Context:
    """Runs over the addresses that it is told."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.addresses: dict[str, int] = {}

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self.shapes[name] = shape
        return True

    def set_tensor_address(self, name: str, address: int) -> None:
        self.addresses[name] = address

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        rows = next(iter(self.shapes.values()))[0]
        shape = self.engine.get_tensor_shape(name)
        return (rows if shape[0] < 0 else shape[0], *shape[1:])

    def execute_async_v3(self, handle: int) -> bool:
        self.engine.runs.append(dict(self.addresses))
        feeds = {name: self._memory(name, shape) for name, shape in self.shapes.items()}
        names = [output.name for output in self.engine.session.get_outputs()]
        for name, found in zip(names, self.engine.session.run(names, feeds), strict=True):
            self._memory(name, found.shape)[:] = found
        return True

    def _memory(self, name: str, shape: tuple[int, ...]) -> Any:
        dtype = np.dtype(self.engine.get_tensor_dtype(name))
        size = int(np.prod(shape)) * dtype.itemsize
        memory = (ctypes.c_ubyte * size).from_address(self.addresses[name])
        return np.frombuffer(memory, dtype).reshape(shape)


class Engine:
    """An engine; `runs` has the addresses of each run."""

    runs: ClassVar[list[dict[str, int]]] = []

    def __init__(self, data: bytes) -> None:
        self.session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
        self._given = {x.name: x for x in self.session.get_inputs()}
        self._tensors = self._given | {x.name: x for x in self.session.get_outputs()}
        self.num_io_tensors = len(self._tensors)

    def get_tensor_name(self, place: int) -> str:
        return list(self._tensors)[place]

    def get_tensor_mode(self, name: str) -> int:
        return 1 if name in self._given else 2

    def get_tensor_dtype(self, name: str) -> Any:
        return _KINDS[self._tensors[name].type]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return tuple(n if isinstance(n, int) else -1 for n in self._tensors[name].shape)

    def create_execution_context(self) -> Context:
        return Context(self)


class Builder:
    """A builder whose engine is the parsed model; `chips`: those that engines are built for."""

    chips: ClassVar[list[int]] = []

    def __init__(self, log: Any) -> None:
        self.network: Any = None

    def create_network(self, flags: int) -> Any:
        self.network = SimpleNamespace(num_inputs=0, model=b"")
        return self.network

    def create_builder_config(self) -> Any:
        return SimpleNamespace(
            add_optimization_profile=lambda profile: 0,
            set_compute_capability=lambda chip, place: self.chips.append(int(chip)),
        )

    def create_optimization_profile(self) -> Any:
        return SimpleNamespace(set_shape=lambda *shapes: None)

    def build_serialized_network(self, network: Any, config: Any) -> bytes:
        return bytes(network.model)


class OnnxParser:
    """Takes every model."""

    num_errors = 0

    def __init__(self, network: Any, log: Any) -> None:
        self.network = network

    def parse(self, model: bytes) -> bool:
        engine = Engine(model)
        given = list(engine._given)
        self.network.model, self.network.num_inputs = model, len(given)
        self.network.get_input = lambda i: SimpleNamespace(
            name=given[i], shape=engine.get_tensor_shape(given[i])
        )
        return True


class _Log:
    ERROR = 1


class Chip(IntEnum):
    """Compute capabilities of TensorRT-RTX 1.7."""

    NONE, CURRENT = 0, 1
    SM75, SM80, SM86, SM89, SM120, SM121 = 75, 80, 86, 89, 120, 121


def rtx_package() -> ModuleType:
    """The module `tensorrt_rtx`."""
    made = package("tensorrt_rtx")
    for name, value in {"__version__": "1.7", "ComputeCapability": Chip}.items():
        setattr(made, name, value)
    return made


def package(module: str = "tensorrt") -> ModuleType:
    """The module `tensorrt`."""
    made = ModuleType(module)
    for name, value in {
        "__version__": "11.0",
        "ILogger": _Log,
        "Builder": Builder,
        "OnnxParser": OnnxParser,
        "NetworkDefinitionCreationFlag": SimpleNamespace(STRONGLY_TYPED=1),
        "BuilderFlag": SimpleNamespace(),
        "Runtime": lambda log: SimpleNamespace(deserialize_cuda_engine=Engine),
        "TensorIOMode": SimpleNamespace(INPUT=1, OUTPUT=2),
        "nptype": np.dtype,
    }.items():
        setattr(made, name, value)
    return made
