"""The precision that is built for the one asked for: the original's chain of fall-backs.

`network-mode` allows precisions, as TensorRT's flags do: FP16 where it would not be faster is FP32,
which is no less exact. `--precision` sets the precision in the graph.

Source: config facts 5.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from noria._core.notices import Notice
from noria.engine.plan_header import Precision
from noria.engine.precision.capability import fast_fp16, slow_int8

_NAMES = {"fp32": "FP32", "fp16": "FP16", "bf16": "BF16", "int8": "INT8", "best": "INT8 and FP16"}


def choose(
    asked: Precision,
    runtimes: Sequence[str],
    *,
    no_table: str | None = None,
    required: bool = False,
    tuned: bool = False,
) -> tuple[Precision, Notice | None]:
    """Choose the precision to build, with a notice about it.

    Args:
        asked: `network-mode`, or `--precision`.
        runtimes: the backend; with `tuned` all that may be chosen.
        no_table: why there are no INT8 scales; None: there are.
        required: True puts `asked` into the graph, whether it is faster or not.
        tuned: True if a tuner finds the fastest of the precisions that `best` stands for.

    Returns:
        The precision; a warning if INT8 was asked for and is not possible; an info if the graph
        is more exact than it had to be, or slower than it could be.
    """
    quick = any(fast_fp16(r) for r in runtimes)
    if asked in ("int8", "best") and no_table is not None:
        text = f"{_NAMES[asked]} takes the scales of activations, and {no_table}: "
        if quick:
            return "fp16", Notice("warning", f"{text}FP16 is built")
        text += f"FP32 is built; {_NOT_FASTER}"
        return "fp32", Notice("warning", text)
    if asked == "best" and tuned:
        return "best", None
    if not required and not quick:
        if asked == "fp16":
            return "fp32", Notice("info", f"FP32 is built; {_NOT_FASTER}")
        if asked == "best":
            return "int8", Notice("info", f"INT8 is built; {_NOT_FASTER}{_slow(runtimes)}")
    if asked in ("int8", "best") and (slow := _slow(runtimes)):
        return asked, Notice("info", f"INT8 is built{slow}")
    return asked, None


_NOT_FASTER = "FP16 is not computed faster here"


def _slow(runtimes: Sequence[str]) -> str:
    if not all(slow_int8(r) for r in runtimes):
        return ""
    return "; onnxruntime takes longer for it than for FP32, --backend openvino may not"
