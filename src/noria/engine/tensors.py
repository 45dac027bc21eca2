"""Tensors a session takes and gives: arrays, or anything on a device that speaks DLPack."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Tensor(Protocol):
    """A NumPy array, or a tensor of PyTorch, CuPy, ONNX Runtime … that need not be on the host."""

    @property
    def shape(self) -> Any: ...

    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


# Source: DLPack's header, DLDeviceType. Pinned and managed memory can be read by the host as it is.
_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13


def device_of(tensor: Any) -> str:
    """Where `tensor` lives: `cpu`, `cuda:0`, or `device 7:0` for kinds that have no name here."""
    ask = getattr(tensor, "__dlpack_device__", None)
    if ask is None:
        return "cpu"
    kind, number = ask()
    if kind in (_CPU, _CUDA_HOST, _CUDA_MANAGED):
        return "cpu"
    return f"cuda:{int(number)}" if kind == _CUDA else f"device {int(kind)}:{int(number)}"
