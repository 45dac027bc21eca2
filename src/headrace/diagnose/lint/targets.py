"""Generations of the original that a config can be checked for, and their differences.

Source: config facts, 2, 5.1 and 8; custom-library facts, 1.6; TensorRT facts, 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANGE = re.compile(r"([0-9.]+)\.\.([0-9.]+)")
Version = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A generation.

    Attributes:
        name: as `--target` takes it.
        version: its first release.
        tensorrt: the major release of TensorRT that comes with it.
        opset: the newest ONNX opset that this TensorRT reads.
        box_bytes: size of a box that a parser returns.
        caffe: Caffe and UFF models are read.
    """

    name: str
    version: Version
    tensorrt: int
    opset: int
    box_bytes: int
    caffe: bool

    @property
    def shown(self) -> str:
        """`DeepStream 6.2`."""
        return self.name.replace("deepstream-", "DeepStream ")


TARGETS = {
    target.name: target
    for target in (
        Target("deepstream-6.2", (6, 2), 8, 17, 24, caffe=True),
        Target("deepstream-7", (7, 0), 8, 17, 24, caffe=True),
        Target("deepstream-8", (8, 0), 10, 22, 24, caffe=False),
        Target("deepstream-9", (9, 0), 10, 22, 28, caffe=False),
    )
}


def known_since(since: str, target: Target) -> bool | None:
    """Whether a key that came with `since` is known to a target.

    `since` is a release, or `6.4..9.0` where only that range is known; None where it leaves the
    target open.
    """
    match = _RANGE.fullmatch(since)
    first, last = (match[1], match[2]) if match else (since, since)
    if _version(last) <= target.version:
        return True
    return None if _version(first) <= target.version else False


def ended(until: str | None, target: Target) -> bool:
    """Whether a key had its last effect in a release before the target."""
    return until is not None and _version(until) < target.version


def _version(text: str) -> Version:
    return tuple(map(int, text.split(".")))
