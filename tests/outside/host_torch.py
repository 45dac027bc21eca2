"""PyTorch whose CUDA device is the host, for published tests that put tensors on a GPU.

A pytest plugin, `-p host_torch`: `.cuda()` and `device="cuda"` give tensors of the CPU, whose
addresses Headrace reads as it reads those of a GPU. Also gives scripts `tensorrt`, as `headrace
exec`.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

from headrace.trt.scripts.script import install
from headrace.trt.scripts.script_libraries import load_libraries

_MAKERS = (
    "arange", "as_tensor", "empty", "eye", "full", "linspace", "ones", "rand", "randint", "randn",
    "randperm", "tensor", "zeros", "empty_like", "full_like", "ones_like", "rand_like",
    "randn_like", "zeros_like",
)  # fmt: skip


def _on_host(value: Any) -> Any:
    kind = getattr(value, "type", value)
    return "cpu" if str(kind).startswith("cuda") else value


def _host(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*values: Any, **named: Any) -> Any:
        if "device" in named:
            named["device"] = _on_host(named["device"])
        values = tuple(
            _on_host(v) if isinstance(v, str) or type(v).__name__ == "device" else v for v in values
        )
        return function(*values, **named)

    return call


def _same(thing: Any, *_: Any, **__: Any) -> Any:
    return thing


def use_host(torch: Any) -> None:
    """Replace what asks for a GPU in PyTorch."""
    for name in _MAKERS:
        setattr(torch, name, _host(getattr(torch, name)))
    for kind in (torch.Tensor, torch.nn.Module):
        kind.cuda = _same  # type: ignore[method-assign, assignment]
        kind.to = _host(kind.to)  # type: ignore[method-assign]
    stream = SimpleNamespace(cuda_stream=0, synchronize=lambda: None)
    for name, value in {
        "is_available": lambda: True, "synchronize": lambda *_: None, "current_device": lambda: 0,
        "current_stream": lambda *_: stream, "default_stream": lambda *_: stream,
        "device_count": lambda: 1, "empty_cache": lambda: None, "device": lambda _: nullcontext(),
        "stream": lambda _: nullcontext(), "Stream": lambda *_: stream,
    }.items():  # fmt: skip
        setattr(torch.cuda, name, value)


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Changes PyTorch when it is imported, which most programs do not do."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_change(module: ModuleType) -> None:
                run(module)
                use_host(module)

            spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec


install()
load_libraries(())
sys.meta_path.insert(0, _AfterTorch())
