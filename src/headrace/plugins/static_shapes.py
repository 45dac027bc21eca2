"""Whether the numbers in the inputs of a graph decide a shape in it, or their shapes alone do."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import GraphProto


_COUNTS = frozenset({  # the extents of what these give are found out by computing it
    "NonZero", "Unique", "Compress", "NonMaxSuppression", "If", "Loop", "Scan", "SequenceMap",
    "StringSplit",
})  # fmt: skip
_EXTENTS = {  # operands that are extents, places or numbers of elements
    "Reshape": (1,), "Expand": (1,), "Tile": (1,), "ConstantOfShape": (0,), "Range": (0, 1, 2),
    "Slice": (1, 2, 3, 4), "Pad": (1, 3), "Resize": (1, 2, 3), "Upsample": (1,), "TopK": (1,),
    "OneHot": (1,), "Split": (1,), "Squeeze": (1,), "Unsqueeze": (1,), "CenterCropPad": (1,),
    "AffineGrid": (1,), "MaxUnpool": (2,), "Col2Im": (1, 2), "SplitToSequence": (1,),
    "SequenceAt": (1,), "BlackmanWindow": (0,), "HannWindow": (0,), "HammingWindow": (0,),
    "DFT": (1,), "STFT": (1, 3), "MelWeightMatrix": (0, 1),
}  # fmt: skip


def decided_by_values(graph: GraphProto, name: str, boundary: Collection[str]) -> bool:
    """Whether the shape of value `name` may depend on more than the shapes of the inputs.

    It stops at the values in `boundary`: their shapes are known, their numbers are not.

    Returns:
        False if it certainly does not; True for operators that ONNX does not define.
    """
    made_by = {o: n for n in graph.node for o in n.output if o}
    constants = {t.name for t in graph.initializer}
    needed: set[str] = set()
    stack = [name]
    while stack:
        value = stack.pop()
        if value in needed or value in constants or value in boundary or value not in made_by:
            continue
        needed.update(made_by[value].output)
        stack += made_by[value].input
    numbers = set(boundary) | ({v.name for v in graph.input} - constants)  # not known before a run
    for node in graph.node:
        if not needed.intersection(node.output):
            continue
        if node.domain not in ("", "ai.onnx"):
            return True
        late = [i for i, x in enumerate(node.input) if x in numbers]
        if not late or node.op_type in ("Shape", "Size"):
            continue
        if node.op_type in _COUNTS or set(late) & set(_EXTENTS.get(node.op_type, ())):
            return True
        if node.op_type.startswith("Reduce") and 1 in late:
            return True
        numbers.update(node.output)
    return False
