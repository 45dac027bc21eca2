"""Gains of runtimes from a precision on this machine.

Measured on an x86 CPU with AVX2 alone (YOLOX-nano, 416 x 416, milliseconds of one run): ONNX
Runtime 47 in FP32, 53 in FP16, 73 in INT8; OpenVINO 50, 47 and 39. Neither has FP16 arithmetic
there: both compute an FP16 graph in FP32, and round its weights alone. ONNX Runtime with a rounding
behind each layer takes 1.9 to 2.1 times as long as for FP32 (YOLOX-nano, RFB-320).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

from headrace._core.errors import EngineError
from headrace._core.findings import Finding, Level
from headrace.engine.backends import GPU_RUNTIMES, get_backend
from headrace.engine.machine import exact_int8
from headrace.engine.plan_header import Precision


@cache
def fast_fp16(runtime: str) -> bool:
    """True if FP16 is computed as such: GPUs, and OpenVINO on CPUs with FP16 arithmetic."""
    if runtime in GPU_RUNTIMES:
        return True
    return runtime == "openvino" and "FP16" in _openvino_capabilities()


@cache
def fast_bf16(runtime: str) -> bool:
    """True if BF16 is computed as such: OpenVINO on CPUs with BF16 arithmetic."""
    return runtime == "openvino" and "BF16" in _openvino_capabilities()


def rounds_fp16(runtime: str) -> bool:
    """True if the graph has to say where FP16 rounds: `engine/precision/rounded.py`.

    ONNX Runtime keeps casts there and back between layers; OpenVINO takes them out.
    """
    return runtime == "onnxruntime" and not fast_fp16(runtime)


def weight_bits(runtime: str) -> Literal[7, 8]:
    """Bits of INT8 weights: 7 where 8 would overflow.

    OpenVINO on such CPUs gave 3 dB of signal to noise for 28 dB with 8 bits, 27 dB with 7 (measured
    on the demo detector).
    """
    return 7 if runtime == "openvino" and not exact_int8() else 8


def unsigned_int8(runtime: str) -> bool:
    """True if INT8 activations are stored around 128.

    OpenVINO (2026.4, on any processor) cuts off the upper half of signed ones that come out of a
    Concat.
    """
    return runtime == "openvino"


def own_zeros(runtime: str) -> bool:
    """True if INT8 activations may have a zero point of their own; TensorRT wants 0."""
    return runtime != "tensorrt"


def _openvino_capabilities() -> frozenset[str]:
    try:
        backend = get_backend("openvino")
    except EngineError:  # not installed
        return frozenset()
    capabilities = getattr(backend, "capabilities", None)
    return frozenset(capabilities()) if capabilities else frozenset()


_NAMES = {"fp32": "FP32", "fp16": "FP16", "bf16": "BF16", "int8": "INT8", "best": "INT8 and FP16"}


def choose(
    asked: Precision,
    runtimes: Sequence[str],
    *,
    no_table: str | None = None,
    required: bool = False,
    tuned: bool = False,
    rounded: bool = False,
) -> tuple[Precision, Finding | None]:
    """Choose the precision to build, with a notice about it.

    `no_table` says why there are no INT8 scales. `required` puts `asked` into the graph, whether it
    is faster or not; `tuned`: a tuner finds the fastest of what `best` stands for, on any of
    `runtimes`; `rounded`: FP16 is wanted for its roundings.

    Returns:
        The precision; a warning if INT8 was asked for and is not possible; an info if the graph
        is more exact than it had to be, or slower than it could be.
    """
    quick = rounded or any(fast_fp16(r) for r in runtimes)

    def built(
        precision: Precision, code: str, level: Level, text: str
    ) -> tuple[Precision, Finding]:
        return precision, Finding(code, level, text, data={"asked": asked, "built": precision})

    if asked in ("int8", "best") and no_table is not None:
        text = f"{_NAMES[asked]} takes the scales of activations, and {no_table}: "
        if quick:
            return built("fp16", "int8-without-table", "warning", f"{text}FP16 is built")
        text += f"FP32 is built; {_NOT_FASTER}"
        return built("fp32", "int8-without-table", "warning", text)
    if asked == "best" and tuned:
        return "best", None
    if not required and not quick:
        if asked == "fp16":
            text = f"FP32 is built; {_NOT_FASTER}; fp16-simulation=full rounds as it does"
            return built("fp32", "precision-not-used", "info", text)
        if asked == "best":
            text = f"INT8 is built; {_NOT_FASTER}"
            return built("int8", "precision-not-used", "info", text)
    return asked, None


_NOT_FASTER = "FP16 is not computed faster here"
