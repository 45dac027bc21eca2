"""Whole lives of the sample plugins, and what the specification says about them, as data."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.network.tensor_spec import TensorSpec
from headrace.plugins import DataType, PluginRegistry
from headrace.plugins.drivers import add_layer, load_engine_plugin
from headrace.plugins.layer import LayerPlugin, Ranges
from tests.plugins.samples import creator_for

FLOAT = np.dtype(np.float32)
ITEM = (3, 4)
X = np.arange(24, dtype=np.float32).reshape(2, *ITEM)


def profile(least: int, most: int) -> Ranges:
    low, high = ((least, *ITEM),), ((most, *ITEM),)
    return Ranges(low, high, high)


def live(
    plugin: Any,
    *,
    profiles: int = 1,
    contexts: int = 1,
    batches: tuple[int, ...] = (2, 2, 1),
) -> list[np.ndarray[Any, Any]]:
    """Add, build, save, free, load, run, free; what the runs gave."""
    registry = PluginRegistry()
    registry.register_creator(creator_for(plugin))
    layer = add_layer(
        plugin(2.0),
        layer="scale",
        input_types=[DataType.FLOAT],
        implicit_batch=plugin.__name__ == "ScaleV2",
    )
    return live_on(layer, registry, profiles=profiles, contexts=contexts, batches=batches)


def live_on(
    layer: LayerPlugin,
    registry: PluginRegistry,
    *,
    profiles: int,
    contexts: int,
    batches: tuple[int, ...] = (2, 2, 1),
) -> list[np.ndarray[Any, Any]]:
    """The same from the layer on."""
    try:
        layer.output_types([DataType.FLOAT])
        layer.output_shapes([(-1, *ITEM)])
        ranges = [profile(1, 2), profile(3, 4)][:profiles]
        built = layer.build([TensorSpec("", FLOAT, (None, *ITEM))], [FLOAT], ranges)
        try:
            built.finish()
            saved = built.save()
        finally:
            built.close()
    finally:
        layer.close()
    loaded = load_engine_plugin(saved, registry)
    results = []
    try:
        loaded.finish()
        for _ in range(contexts):
            context = loaded.context()
            try:
                results += [context.run([X[:n]])[0] for n in batches]
            finally:
                context.close()
    finally:
        loaded.close()
    return results


# (object, method) in order. Letters as in the specification: U the user's object, N the network's
# copy, B the builder's, C the probe, E the engine's, R a loaded one, K a context's. Attributes are
# read where the original calls a getter.
DYNAMIC_TWO_PROFILES = """
U num_outputs | U get_output_datatype | U num_outputs | U clone N | U plugin_type
N get_output_datatype | N get_output_dimensions
N clone B | B get_output_dimensions | B plugin_type
B clone C0 | C0 supports_format_combination | C0 supports_format_combination | C0 clone E0
E0 configure_plugin | E0 get_workspace_size | E0 get_workspace_size | C0 destroy
B clone C1 | C1 supports_format_combination | C1 supports_format_combination | C1 clone E1
E1 configure_plugin | E1 get_workspace_size | E1 get_workspace_size | C1 destroy
E0 initialize | E1 initialize | B destroy
E0 plugin_type | E0 plugin_version | E0 plugin_namespace | E0 get_serialization_size | E0 serialize
E1 plugin_type | E1 plugin_version | E1 plugin_namespace | E1 get_serialization_size | E1 serialize
E0 terminate | E0 destroy | E1 terminate | E1 destroy | N destroy
creator plugin_version | creator plugin_namespace | creator deserialize_plugin R0
creator plugin_version | creator plugin_namespace | creator deserialize_plugin R1
R0 initialize | R1 initialize
R0 clone K0 | R1 clone K1 | K0 attach_to_context | K1 attach_to_context
K0 configure_plugin | K0 enqueue | K0 enqueue | K0 configure_plugin | K0 enqueue
K0 detach_from_context | K0 destroy | K1 detach_from_context | K1 destroy
R0 clone L0 | R1 clone L1 | L0 attach_to_context | L1 attach_to_context
L0 configure_plugin | L0 enqueue | L0 enqueue | L0 configure_plugin | L0 enqueue
L0 detach_from_context | L0 destroy | L1 detach_from_context | L1 destroy
R0 terminate | R0 destroy | R1 terminate | R1 destroy
"""

# `get_capability_interface` comes before every group of calls and is left out here.
V3_ONE_PROFILE = """
U num_outputs | U get_output_data_types | U num_outputs | U num_outputs | U clone N | U plugin_name
N num_outputs | N get_output_data_types | N get_output_shapes
N clone B | B get_output_shapes | B get_output_shapes
B clone C | C supports_format_combination | C supports_format_combination
C format_combination_limit | C timing_cache_id
C supports_format_combination | C supports_format_combination
C attach_to_context D | D configure_plugin | D get_valid_tactics | C timing_cache_id
C attach_to_context E | E configure_plugin | E set_tactic | E get_workspace_size
E get_workspace_size | E get_workspace_size | E get_workspace_size
E plugin_name | E plugin_version | E metadata_string
D destroy | C destroy | B destroy
E plugin_name | E plugin_version | E plugin_namespace | E get_fields_to_serialize
E destroy | N destroy
creator plugin_version | creator plugin_namespace | creator create_plugin R | R set_tactic
R attach_to_context K | K on_shape_change | K enqueue | K enqueue | K on_shape_change | K enqueue
K destroy | R destroy
"""

BATCHED = {
    "V2": """
U num_outputs | U clone N | U plugin_type
N get_output_shape
N clone E | E get_output_shape | E supports_format | E configure_with_format | E get_workspace_size
E initialize
E plugin_type | E plugin_version | E plugin_namespace | E serialization_size | E serialize
E terminate | E destroy | N destroy
creator plugin_version | creator plugin_namespace | creator deserialize_plugin R | R initialize
R clone K | K execute_async | K execute_async | K execute_async | K destroy
R terminate | R destroy
""",
    "V2Ext": """
U num_outputs | U clone N | U plugin_type | N get_output_data_type
N get_output_data_type | N get_output_shape
N clone E | E get_output_shape | E supports_format | E get_output_data_type | E configure_plugin
E get_workspace_size | E initialize
E plugin_type | E plugin_version | E plugin_namespace | E serialization_size | E serialize
E terminate | E destroy | N destroy
creator plugin_version | creator plugin_namespace | creator deserialize_plugin R | R initialize
R clone K | K attach_to_context | K execute_async | K execute_async | K execute_async
K detach_from_context | K destroy
R terminate | R destroy
""",
    "V2IOExt": """
U num_outputs | U clone N | U plugin_type | N get_output_data_type
N get_output_data_type | N get_output_shape
N clone E | E get_output_shape | E supports_format_combination | E supports_format_combination
E configure_plugin | E get_workspace_size | E initialize
E plugin_type | E plugin_version | E plugin_namespace | E serialization_size | E serialize
E terminate | E destroy | N destroy
creator plugin_version | creator plugin_namespace | creator deserialize_plugin R | R initialize
R clone K | K attach_to_context | K execute_async | K execute_async | K execute_async
K detach_from_context | K destroy
R terminate | R destroy
""",
}


def steps(text: str) -> list[list[str]]:
    """The words of each step."""
    return [step.split() for line in text.strip().splitlines() for step in line.split("|")]
