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

_SINCE = {
    "7.2": "BatchedNMSDynamic_TRT:1 GridAnchorRect_TRT:1 LReLU_TRT:1 Split:1 CustomEmbLayerNormPluginDynamic:2 CustomSkipLayerNormPluginDynamic:2 CustomSkipLayerNormPluginDynamic:3 CustomQKVToContextPluginDynamic:2 CustomQKVToContextPluginDynamic:3",
    "8.0": "EfficientNMS_TRT:1 EfficientNMS_ONNX_TRT:1 NMSDynamic_TRT:1 ScatterND:1 CropAndResizeDynamic:1 ProposalDynamic:1 CustomEmbLayerNormPluginDynamic:3 CustomSkipLayerNormPluginDynamic:4",
    "8.4": "EfficientNMS_Explicit_TF_TRT:1 EfficientNMS_Implicit_TF_TRT:1 MultiscaleDeformableAttnPlugin_TRT:1 VoxelGeneratorPlugin:1 PillarScatterPlugin:1 DecodeBbox3DPlugin:1 DisentangledAttention_TRT:1",
    "8.5": "Clip_TRT:1 ROIAlign_TRT:1 InstanceNormalization_TRT:2",
    "8.6": "ModulatedDeformConv2d:1",
    "10.0": "Reorg_TRT:2 ScatterElements:1",
    "10.1": "ROIAlign_TRT:2",
    "10.3": "ScatterElements:2 InstanceNormalization_TRT:3",
    "10.4": "CustomEmbLayerNormPluginDynamic:4 CustomEmbLayerNormPluginDynamic:5 CustomSkipLayerNormPluginDynamic:5 CustomSkipLayerNormPluginDynamic:6 CustomSkipLayerNormPluginDynamic:7 CustomSkipLayerNormPluginDynamic:8",
    "10.5": "CustomQKVToContextPluginDynamic:4 CustomQKVToContextPluginDynamic:5 CustomQKVToContextPluginDynamic:6",
    "10.6": "CustomEmbLayerNormPluginDynamic:6",
    "10.11": "MultiscaleDeformableAttnPlugin_TRT:2 ModulatedDeformConv2d:2 DisentangledAttention_TRT:2",
    "10.12": "CropAndResizeDynamic:2",
    "11.0": "TopkLastDim:1",
}
"""The first release of TensorRT's open sources that has a plugin, 7.1 where it is not named."""
_NOT_IN_11 = "EfficientNMS_ONNX_TRT BatchedNMSDynamic_TRT BatchedNMS_TRT NMSDynamic_TRT NMS_TRT LReLU_TRT Clip_TRT Normalize_TRT BatchTilePlugin_TRT SpecialSlice_TRT CoordConvAC Split CropAndResize ProposalDynamic Proposal CustomGeluPluginDynamic"
RELEASES = {key: release for release, keys in _SINCE.items() for key in keys.split()}
GONE = {f"{name}:1" for name in _NOT_IN_11.split()} | {"CropAndResizeDynamic:1"}

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
- BERT's plugins take floats in versions that are for INT8 alone
  (`CustomSkipLayerNormPluginDynamic` 3, 4, 7 and 8, `CustomQKVToContextPluginDynamic` 3 and 6);
  scales of INT8 change nothing. A mask is always the number of words before the first masked one.
  Tokens beyond the vocabulary are an error.

## Table

*Releases* are those of TensorRT whose open sources have it.

| Plugin | Version | Class | Runs | Releases | Fields |
|---|---|---|---|---|---|
"""


def page() -> str:
    """Return the whole page as Markdown."""
    rows = []
    for _, group in groupby(standard_layers(), key=lambda layer: layer.name):
        first: type[StandardLayer] | None = None
        for layer in group:
            same = first is not None and first.fields == layer.fields
            rows.append(_row(layer, first if same else None, named=first is None))
            first = first if same else layer
    return _TEXT + "\n".join(rows) + "\n"


def _row(layer: type[StandardLayer], like: type[StandardLayer] | None, *, named: bool) -> str:
    name = f"`{layer.name}`" if named else ""
    fields = f"as version {like.version}" if like else "<br>".join(map(_field, layer.fields))
    cells = [name, layer.version, f"`{_CLASSES[layer.interface]}`", _runs(layer), _there(layer)]
    cells.append(fields or "none")
    return f"| {' | '.join(cells)} |"


def _there(layer: type[StandardLayer]) -> str:
    key = f"{layer.name}:{layer.version}"
    return f"{RELEASES.get(key, '7.1')}–{'10.16' if key in GONE else '11.1'}"


def _runs(layer: type[StandardLayer]) -> str:
    own = "native" if layer.native else "NumPy"
    return f"graph, else {own}" if layer.decompose is not StandardLayer.decompose else own


def _field(field: Field) -> str:
    if field.required:
        default = ""
    elif field.default == ():
        default = " = none"
    elif isinstance(field.default, tuple):
        default = " = " + (", ".join(f"{v:g}" for v in field.default) or "none")
    else:
        text = field.default if isinstance(field.default, str) else f"{field.default:g}"
        default = f" = {text}"
    return f"`{field.name}` {field.describe()}{default}"
