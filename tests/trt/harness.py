"""Building and running small networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace.trt as trt


class Messages(trt.ILogger):
    """A logger that keeps what it is told."""

    def __init__(self) -> None:
        trt.ILogger.__init__(self)
        self.said: list[tuple[Any, str]] = []

    def log(self, severity: Any, msg: str) -> None:
        self.said.append((severity, msg))

    @property
    def errors(self) -> list[str]:
        return [m for s, m in self.said if s <= trt.Logger.ERROR]


def network(logger: Any = None) -> Any:
    builder = trt.Builder(logger or Messages())
    return builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))


def engine_of(net: Any, config: Any = None) -> Any:
    """The engine of a network, through its bytes."""
    builder = net.builder
    data = builder.build_serialized_network(net, config or builder.create_builder_config())
    assert data is not None, builder.logger.said
    engine = trt.Runtime(builder.logger).deserialize_cuda_engine(data)
    assert engine is not None, builder.logger.said
    return engine


def execute(engine: Any, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    """Run by names; outputs are arrays of the shapes that the context tells."""
    context = engine.create_execution_context()
    keep = []
    for name, array in inputs.items():
        data = np.asarray(array, trt.nptype(engine.get_tensor_dtype(name)), order="C")
        assert context.set_input_shape(name, data.shape)
        context.set_tensor_address(name, data.ctypes.data)
        keep.append(data)
    outputs = {}
    for i in range(engine.num_io_tensors):
        name = engine.get_tensor_name(i)
        if engine.get_tensor_mode(name) == trt.TensorIOMode.OUTPUT:
            collector = Collector()
            context.set_output_allocator(name, collector)
            outputs[name] = (collector, trt.nptype(engine.get_tensor_dtype(name)))
    assert context.execute_async_v3(0), engine._logger.said
    return {n: c.array(d) for n, (c, d) in outputs.items()}


class Collector(trt.IOutputAllocator):
    """Memory as large as it is asked for."""

    def __init__(self) -> None:
        trt.IOutputAllocator.__init__(self)
        self.buffer = np.zeros(1, np.uint8)
        self.shape: tuple[int, ...] = ()

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        self.buffer = np.zeros(max(1, size), np.uint8)
        return int(self.buffer.ctypes.data)

    def notify_shape(self, tensor_name: str, shape: Any) -> None:
        self.shape = tuple(shape)

    def array(self, dtype: Any) -> np.ndarray:
        count = int(np.prod(self.shape))
        return (
            self.buffer.view()[: count * np.dtype(dtype).itemsize].view(dtype).reshape(self.shape)
        )


def run_layer(
    make: Callable[..., Any], *arrays: np.ndarray, dynamic: bool = False
) -> list[np.ndarray]:
    """Outputs of the layer that `make(network, *tensors)` adds; shapes must be as foretold."""
    net = network()
    names = [f"in{i}" for i in range(len(arrays))]
    tensors = [
        net.add_input(n, trt.DataType.of(a.dtype), [-1] * a.ndim if dynamic else a.shape)
        for n, a in zip(names, arrays, strict=True)
    ]
    layer = make(net, *tensors)
    outputs = [layer.get_output(i) for i in range(layer.num_outputs)]
    for i, tensor in enumerate(outputs):
        tensor.name = f"out{i}"
        net.mark_output(tensor)
    config = net.builder.create_builder_config()
    if dynamic:
        profile = net.builder.create_optimization_profile()
        for n, a in zip(names, arrays, strict=True):
            profile.set_shape(n, a.shape, a.shape, a.shape)
        assert config.add_optimization_profile(profile) == 0
    told = [tuple(t.shape) for t in outputs]
    types = [t.dtype for t in outputs]
    engine = engine_of(net, config)
    made = execute(engine, **dict(zip(names, arrays, strict=True)))
    results = [made[f"out{i}"] for i in range(len(outputs))]
    for shape, kind, array in zip(told, types, results, strict=True):
        assert len(shape) == array.ndim
        assert all(d in (-1, have) for d, have in zip(shape, array.shape, strict=True)), (
            shape, array.shape,
        )  # fmt: skip
        if not dynamic:
            assert trt.nptype(kind) == array.dtype
    return results
