"""docs/standard-plugins.md: the plugins that come with TensorRT, with their fields."""

# ruff: noqa: E501 (a table's rows are one line)

from __future__ import annotations

from itertools import groupby

from headrace.plugins.standard import standard_layers
from headrace.plugins.standard.fields import Field
from headrace.plugins.standard.layer import StandardLayer

_CLASSES = {
    "V2": "IPluginV2",
    "V2Ext": "IPluginV2Ext",
    "IOExt": "IPluginV2IOExt",
    "Dyn": "IPluginV2DynamicExt",
    "V3": "IPluginV3",
}

_TEXT = """\
# Standard plugins

<!-- written by make schema -->

The plugins that come with TensorRT (`libnvinfer_plugin`) run here on the CPU, under the names,
versions, fields and shapes of the original; those that newer releases dropped are kept. A model
that has such nodes needs nothing: a node of a type that ONNX does not know is looked up among them.
Their sources: ONNX nodes, networks made by code, UFF models.

    from headrace.plugins.standard import init_libnvinfer_plugins

    init_libnvinfer_plugins(None, "")   # for scripts that ask the registry; engines do it themselves

*Runs* says what becomes of a plugin:

| | means |
|---|---|
| graph | replaced by ONNX operators that compute the same, so the runtime optimises across it; where the operators of the model's opset are too old, or an axis that must be fixed is not, it runs as a plugin |
| native | C++ called by the runtime or between the pieces of the graph, the interpreter's lock released |
| NumPy | NumPy, called in the same way |

A field without a default must be given; a wrong type, number or value is an error that names the
layer and the field. An integer attribute of an ONNX node is an INT32 field, a float one FLOAT32. In
ONNX models `IPluginV2Ext` and `IPluginV2IOExt` plugins take the first axis for the batch; their
other axes must be fixed. FLOAT and HALF tensors are computed in FP32.

## What differs from a GPU

- Of equal scores the lower box goes first, then the lower class; a GPU's order is not reproducible.
- A box with a NaN neither suppresses nor is suppressed; a NaN score is no candidate.
- `EfficientNMS_TRT` drops what is below its threshold, at any threshold; the original keeps some of
  it below 0.007.
- A field left out has its default; the original's `class_agnostic` may come from another node.
- `scoreBits` (radix sort of FP16 scores) changes nothing: scores are sorted whole.
- Proposals with a side at or below the least size are dropped; the original puts them last.
- `Region_TRT` has no softmax tree (`smTree`): it is refused.
- Pillars and 3-D boxes come out by their place, not by chance.

## Table

| Plugin | Version | Class | Runs | Fields |
|---|---|---|---|---|
"""


def page() -> str:
    """Return the whole page as Markdown."""
    rows = []
    for _, group in groupby(standard_layers(), key=lambda layer: layer.name):
        rows += [_row(layer, first=i == 0) for i, layer in enumerate(group)]
    return _TEXT + "\n".join(rows) + "\n"


def _row(layer: type[StandardLayer], *, first: bool) -> str:
    name = f"`{layer.name}`" if first else ""
    fields = "<br>".join(map(_field, layer.fields)) if first else "as version 1"
    cells = [name, layer.version, f"`{_CLASSES[layer.interface]}`", _runs(layer), fields or "none"]
    return f"| {' | '.join(cells)} |"


def _runs(layer: type[StandardLayer]) -> str:
    own = "native" if layer.native else "NumPy"
    return f"graph, else {own}" if layer.decompose is not StandardLayer.decompose else own


def _field(field: Field) -> str:
    if field.required:
        default = ""
    elif isinstance(field.default, tuple):
        default = " = " + (", ".join(f"{v:g}" for v in field.default) or "none")
    else:
        text = field.default if isinstance(field.default, str) else f"{field.default:g}"
        default = f" = {text}"
    return f"`{field.name}` {field.describe()}{default}"
