"""How many bytes one box of a C++ detector parser has: 24 up to generation 8.0, 28 since 9.0.

Nothing in a library declares it, so evidence decides. Source: custom-library spec 1.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from headrace._core.types import Array
from headrace.binary.elf import ElfFile

BoxLayout = Literal[24, 28]
MARKERS: dict[BoxLayout, str] = {24: "headrace_abi_box_bytes_24", 28: "headrace_abi_box_bytes_28"}

# std::vector's longest length, (2^63 - 1) / sizeof(element): an immediate in code that grows one.
FINGERPRINTS: dict[BoxLayout, bytes] = {
    24: (0x0555555555555555).to_bytes(8, "little"),
    28: (0x0492492492492492).to_bytes(8, "little"),
}
NEEDED_HINTS: dict[BoxLayout, tuple[str, ...]] = {
    24: ("libnvinfer.so.7", "libnvinfer.so.8",
         "libcudart.so.10.2", "libcudart.so.11.0", "libcudart.so.12"),
    28: ("libcudart.so.13",),
}  # fmt: skip
_X86_64 = 62


@dataclass(frozen=True, slots=True)
class StaticEvidence:
    """The evidence in the file.

    Attributes:
        layout: bytes per box, or None if the file has no evidence.
        certain: the file declares it; frames need not confirm it.
        reason: the evidence in words.
    """

    layout: BoxLayout | None
    certain: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """One hint at the layout; `layout` is None for a hint that decides nothing."""

    layout: BoxLayout | None
    kind: Literal["marker", "code", "linked"]
    reason: str


def all_evidence(elf: ElfFile) -> list[Evidence]:
    """Every hint in the file, the strongest kind first."""
    exported = elf.exported()
    evidence = [
        Evidence(layout, "marker", f"it exports {name}: compiled against headrace's headers")
        for layout, name in MARKERS.items()
        if name in exported
    ]
    if elf.machine == _X86_64:
        counts = {layout: elf.data.count(text) for layout, text in FINGERPRINTS.items()}
        code: BoxLayout | None = 28 if counts[28] else 24 if counts[24] else None
        said = ", ".join(
            f"{counts[layout] or 'no'} of {layout} bytes" for layout in sorted(FINGERPRINTS)
        )
        evidence.append(
            Evidence(code, "code", f"limits of vectors in its code, by element: {said}")
        )
    for layout, names in NEEDED_HINTS.items():
        evidence += [
            Evidence(layout, "linked", f"it is linked against {name}")
            for name in names
            if name in elf.needed
        ]
    return evidence


def static_evidence(elf: ElfFile) -> StaticEvidence:
    """The box layout, from marker, fingerprint and linked libraries, in this order."""
    exported = elf.exported()
    marked = [layout for layout, name in MARKERS.items() if name in exported]
    if len(marked) == 1:
        return StaticEvidence(
            marked[0], True, f"compiled against headrace's headers (marker {MARKERS[marked[0]]})"
        )
    mixed = "it carries the markers of both layouts; " if marked else ""
    if elf.machine == _X86_64:
        if FINGERPRINTS[28] in elf.data:
            return StaticEvidence(28, False, mixed + "its code grows vectors of 28-byte elements")
        if FINGERPRINTS[24] in elf.data:
            return StaticEvidence(
                24, False, mixed + "its code grows vectors of 24-byte elements and none of 28"
            )
    for layout, names in NEEDED_HINTS.items():
        if linked := [n for n in names if n in elf.needed]:
            return StaticEvidence(
                layout, False, mixed + f"it is linked against {linked[0]} (a hint only)"
            )
    return StaticEvidence(None, False, mixed + "the file does not tell")


def candidates(size: int, capacity: int) -> list[BoxLayout]:
    """The layouts in which a vector of `size` bytes and `capacity` bytes can be boxes.

    Growth by push_back doubles the capacity, which is a multiple of 24 and 28 at once only by
    reserve or assignment: the capacity decides where the size alone does not.
    """
    layouts: tuple[BoxLayout, BoxLayout] = (24, 28)
    return [b for b in layouts if size % b == 0 and capacity % b == 0]


def plausibility(
    data: npt.NDArray[np.uint8], layout: BoxLayout, num_classes: int, width: int, height: int
) -> float:
    """The share of boxes that look like boxes when `data` is read in `layout`, 0..1.

    A box is plausible if its class is configured, its confidence in 0..1, and its position and
    size within a few times the network input.
    """
    words = layout // 4
    floats: Array = data.view(np.float32).reshape(-1, words)
    ids = data.view(np.uint32).reshape(-1, words)[:, 0]
    reach = 4.0 * max(width, height, 1)
    boxes, scores = floats[:, 1:5], floats[:, 5]
    with np.errstate(invalid="ignore"):
        good = (
            (ids < max(num_classes, 1))
            & (np.abs(boxes) <= reach).all(axis=1)
            & (boxes[:, 2] >= 0)
            & (boxes[:, 3] >= 0)
            & (scores >= 0)
            & (scores <= 1)
        )
    return float(np.count_nonzero(good)) / len(good)
