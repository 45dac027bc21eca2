"""The protocols that runtimes implement, with their options and tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from headrace._core.plain_record import PlainRecord
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.engine.plugin_graph.plugins_in_runtime import CallbackGraph, PluginCallbacks

Optimization = Literal["none", "basic", "extended", "all"]
"""How far a runtime may rewrite the graph before it runs: not at all; what is equal to the last
bit; fused operators; also other memory layouts of tensors and weights."""

PluginKey = tuple[str, str, str]
"""Type, version and namespace."""


class RunnerOptions(PlainRecord, frozen=True):
    """How a plan is run; nothing of it is part of the plan.

    Attributes:
        threads: threads of one run; None shares every core among the streams.
        streams: runs at the same time that the runtime is made ready for. More may be asked for:
            they wait, or share the threads.
        spinning: idle threads wait busily for the next operator. Faster on a machine of one's
            own; takes time from decoding and parsing when cores are few.
        optimization: how far the graph may be rewritten.
        max_batch: most items of one run, where the model leaves them free; None is unknown. Some
            runtimes are faster with the batch they know.
        batched: axis 0 of the first input is the batch; otherwise every axis is as the model says,
            and nothing is assumed of any.
        graph: True launches all kernels of a run at once, on a GPU whose runtime can; the shapes of
            the first run have this advantage, and `streams` is 1.
        half: `fp16` or `bf16` if the model is to be computed in it where the processor can; else
            a runtime computes in FP32 what the graph leaves to it.
        amx: False keeps OpenVINO from the processor's tiles (AMX), which small layers in INT8 are
            slower with. The first model of a process decides for all of them.
    """

    threads: int | None = None
    streams: int = 1
    spinning: bool = False
    optimization: Optimization = "all"
    max_batch: int | None = None
    batched: bool = True
    half: Literal["fp16", "bf16"] | None = None
    graph: bool = False
    amx: bool = True


@runtime_checkable
class DLPackTensor(Protocol):
    """A NumPy array, or a tensor of PyTorch, CuPy, ONNX Runtime … that need not be on the host."""

    @property
    def shape(self) -> Sequence[int]:
        """Extents of the axes."""
        ...

    def __dlpack__(self) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


# Source: DLPack's header, DLDeviceType. Pinned and managed memory can be read by the host as it is.
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13


def device_of(tensor: object) -> str:
    """Where `tensor` lives: `cpu`, `cuda:0`, or `device 7:0` for kinds that have no name here."""
    ask = getattr(tensor, "__dlpack_device__", None)
    if ask is None:
        return "cpu"
    kind, number = ask()
    if kind in (_CPU, _CUDA_HOST, _CUDA_MANAGED):
        return "cpu"
    return f"cuda:{int(number)}" if kind == _CUDA else f"device {int(kind)}:{int(number)}"


Outputs: TypeAlias = Sequence[Any]
"""Arrays, or tensors that lie where the runtime left them."""


class Runner(Protocol):
    """A loaded model: fixed names and types in, tensors out. `run` is thread-safe.

    Attributes:
        inputs, outputs: bindings in the model's order.
        device: where tensors live that it takes and gives without a copy: `cpu`, or `cuda:0`.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    device: str

    def run(self, feeds: Mapping[str, DLPackTensor], *, to_host: bool = True) -> Outputs:
        """All outputs, in binding order; new ones at each run.

        Args:
            feeds: arrays, or tensors on `device`.
            to_host: give arrays. Otherwise tensors stay where they were computed.

        Raises:
            EngineError: the runtime failed.
        """
        ...

    def close(self) -> None:
        """Release the model. Runs that are under way finish."""
        ...


@runtime_checkable
class PlacingRunner(Runner, Protocol):
    """A runner that can write outputs into given arrays."""

    def run_into(self, feeds: Mapping[str, DLPackTensor], targets: Mapping[str, Array]) -> Outputs:
        """`run`, each output that `targets` names being written into that array if it can be.

        Args:
            feeds: arrays on the host.
            targets: C-contiguous arrays of the output's type, and the shape it will have.

        Raises:
            EngineError: as `run`; perhaps if an output has another shape than its array.
        """
        ...


@runtime_checkable
class TypedRunner(Runner, Protocol):
    """A runner that lists the types of its layers."""

    def layer_types(self) -> Mapping[str, int]:
        """Layers by type: `f32`, `f16`, `i32` and others."""
        ...


class Backend(Protocol):
    """One runtime."""

    name: str

    def version(self) -> str:
        """Version of the runtime."""
        ...

    def why_not(self) -> str | None:
        """Why nothing can run with it on this machine (a device is missing); None if it can."""
        ...

    def open(self, model: bytes, options: RunnerOptions) -> Runner:
        """Load an ONNX model (one message, all weights inside).

        Raises:
            EngineError: the runtime refuses the model, or cannot run here.
        """
        ...


@runtime_checkable
class CompilingBackend(Backend, Protocol):
    """A runtime that compiles models into blobs worth keeping."""

    def compile(self, model: bytes, options: RunnerOptions) -> bytes:
        """Compile a model for `open`. May be possible where nothing can run.

        Raises:
            EngineError: the runtime refuses the model.
        """
        ...

    def open(self, model: bytes, options: RunnerOptions, compiled: bytes | None = None) -> Runner:
        """Load a model; `compiled` of `compile` makes it faster."""
        ...


@runtime_checkable
class ExternalWeightsBackend(Backend, Protocol):
    """A runtime that takes models larger than one message."""

    def open_with_weights(
        self, graph: bytes, weights: memoryview, options: RunnerOptions
    ) -> Runner:
        """Load a model with its large weights as external data in a file called `weights`.

        Raises:
            EngineError: as `open`.
        """
        ...


@runtime_checkable
class PluginBackend(CompilingBackend, Protocol):
    """A runtime that may have plugins itself: a network with no others is built whole by it."""

    def lacks(self, plugins: Iterable[PluginKey]) -> list[PluginKey]:
        """Those of `plugins` that are not registered with it."""
        ...


@runtime_checkable
class CallingBackend(Backend, Protocol):
    """A runtime that calls plugins back as operators of the graph, so that it need not be split."""

    def callback_types(self) -> frozenset[int]:
        """ONNX element types that its operators can take and give."""
        ...

    def why_no_callbacks(self) -> str | None:
        """Why the installed runtime takes no operators; None if it does."""
        ...

    def open_with_callbacks(
        self, graph: CallbackGraph, options: RunnerOptions, calls: PluginCallbacks
    ) -> Runner:
        """Load a model with plugin nodes that `calls` computes.

        They may be called from any thread.

        Raises:
            EngineError: the runtime refuses the model.
        """
        ...
