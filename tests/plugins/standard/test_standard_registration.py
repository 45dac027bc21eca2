"""Which plugins there are, and how they come into a registry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from docs._ext.standard_plugins import GONE, RELEASES, page
from headrace.plugins import PluginRegistry
from headrace.plugins.standard import init_libnvinfer_plugins, register_standard, standard_layers

DOCS = Path(__file__).parents[3] / "docs"

NAMES = """
EfficientNMS_TRT EfficientNMS_ONNX_TRT EfficientNMS_Explicit_TF_TRT EfficientNMS_Implicit_TF_TRT
BatchedNMSDynamic_TRT BatchedNMS_TRT NMSDynamic_TRT NMS_TRT InstanceNormalization_TRT:1
InstanceNormalization_TRT:2 InstanceNormalization_TRT:3 ROIAlign_TRT:1 ROIAlign_TRT:2
ResizeNearest_TRT LReLU_TRT Clip_TRT Normalize_TRT PriorBox_TRT GridAnchor_TRT GridAnchorRect_TRT
FlattenConcat_TRT BatchTilePlugin_TRT ProposalDynamic Proposal CropAndResizeDynamic:1
CropAndResizeDynamic:2 CropAndResize RPROI_TRT Region_TRT Reorg_TRT:1 Reorg_TRT:2
MultilevelProposeROI_TRT MultilevelCropAndResize_TRT GenerateDetection_TRT ProposalLayer_TRT
PyramidROIAlign_TRT DetectionLayer_TRT SpecialSlice_TRT MultiscaleDeformableAttnPlugin_TRT:1
MultiscaleDeformableAttnPlugin_TRT:2 ModulatedDeformConv2d:1 ModulatedDeformConv2d:2
DecodeBbox3DPlugin PillarScatterPlugin VoxelGeneratorPlugin ScatterND ScatterElements:1
ScatterElements:2 CoordConvAC Split GroupNormalizationPlugin TopkLastDim
DisentangledAttention_TRT:1 DisentangledAttention_TRT:2 CustomFCPluginDynamic
CustomGeluPluginDynamic
"""
FAMILIES = {"EmbLayerNorm": 6, "SkipLayerNorm": 8, "QKVToContext": 6}
PRESENT = NAMES.split() + [
    f"Custom{name}PluginDynamic:{version + 1}"
    for name, count in FAMILIES.items()
    for version in range(count)
]


@pytest.mark.parametrize("key", PRESENT)
def test_it_is_there_under_its_name_and_version(key: str) -> None:
    name, _, version = key.partition(":")
    registry = PluginRegistry()
    register_standard(registry)
    creator = registry.find(name, version or "1")
    assert creator is not None
    assert [f.name for f in creator.field_names] == [f.name for f in creator.kind.fields]


def test_there_is_nothing_else() -> None:
    keys = {(layer.name, layer.version) for layer in standard_layers()}
    assert len(keys) == len(standard_layers()) == len(PRESENT)
    listed = {tuple(key.split(":")) for key in (*RELEASES, *GONE)}
    assert listed <= keys


def test_registering_again_changes_nothing_and_keeps_what_is_there() -> None:
    registry = PluginRegistry()
    register_standard(registry)
    before = registry.all_creators
    register_standard(registry)
    assert registry.all_creators == before
    assert registry.notices == []
    register_standard(registry, "mine")
    assert registry.find("Clip_TRT", "1", "mine") is not registry.find("Clip_TRT")


def test_init_registers_with_the_process_and_is_asked_twice() -> None:
    code = (
        "from headrace.plugins import get_plugin_registry as r\n"
        "from headrace.plugins.standard import init_libnvinfer_plugins as init\n"
        "assert init(None, '') is True and init() is True\n"
        "assert r().find('EfficientNMS_TRT') is not None\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert callable(init_libnvinfer_plugins)


def test_the_page_is_what_the_code_says() -> None:
    """`make schema` writes it."""
    assert (DOCS / "standard-plugins.md").read_text(encoding="utf-8") == page()
