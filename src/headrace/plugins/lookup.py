"""Find plugin nodes, and word the errors for unknown operators and plugins in control flow.

Source: tensorrt-plugins spec 11 (dispatch and fallback importer).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import headrace
from headrace._core.errors import EngineError, ModelError
from headrace.network.network import RUNTIME_DOMAINS, Network
from headrace.plugins.fields import attribute_names
from headrace.plugins.loading import PYTHON_SUFFIXES, loaded_files
from headrace.plugins.onnx_rules import given_name
from headrace.plugins.registry import TWINS, PluginRegistry, get_plugin_registry

if TYPE_CHECKING:
    from pathlib import Path

    import onnx_ir as ir
    from onnx import GraphProto, NodeProto

    from headrace.plugins.base import AnyCreator


IN_CPP = (
    "or write it in C++: REGISTER_TENSORRT_PLUGIN(<its creator>), compiled by headrace compile, "
    "and custom-lib-path loads the .so; headrace inspect shows what a library registers"
)

MOST_LISTED = 5
NAMESPACE = "plugin_namespace"
"""Attribute of a node that only plugins have."""


class UnknownOperatorsError(EngineError):
    """A model has operators that neither ONNX, nor the runtime, nor any plugin knows."""

    code = "operator-unknown"

    def with_hints(self, hints: list[str]) -> UnknownOperatorsError:
        """Put hints about registered plugins before the other advice."""
        remedies = tuple(dict.fromkeys((*hints, *self.finding.remedies)))
        return UnknownOperatorsError(replace(self.finding, remedies=remedies))


def is_unknown(
    node: NodeProto, opsets: dict[str, int], functions: frozenset[tuple[str, str]]
) -> bool:
    """Whether a `NodeProto` is neither ONNX's, nor a runtime's, nor a function of the model.

    One with the attribute `plugin_namespace` asks for a plugin, whatever it is called.
    """
    import onnx

    domain = "" if node.domain == "ai.onnx" else node.domain
    if domain in RUNTIME_DOMAINS or (node.domain, node.op_type) in functions:
        return False
    if asks_for_plugin(node):
        return True
    version = opsets.get(domain, opsets.get("", 1))
    try:
        onnx.defs.get_schema(node.op_type, version, domain)
    except onnx.defs.SchemaError:
        return True
    return False


def asks_for_plugin(node: NodeProto) -> bool:
    """Whether a `NodeProto` has the attribute `plugin_namespace`."""
    return any(attribute.name == NAMESPACE for attribute in node.attribute)


def is_builtin(op_type: str, opset: int) -> bool:
    """Whether ONNX's own domain has an operator of that name at `opset`."""
    import onnx

    try:
        onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return False
    return True


def creator_for(
    node: NodeProto,
    opsets: dict[str, int],
    functions: frozenset[tuple[str, str]],
    registry: PluginRegistry,
) -> AnyCreator | None:
    """Find the creator of the plugin that computes a `NodeProto` of a model; None without one.

    An operator of ONNX is that operator in any domain, unless the node has `plugin_namespace`.
    """
    if not is_unknown(node, opsets, functions):
        return None
    if node.domain and not asks_for_plugin(node) and is_builtin(node.op_type, opsets.get("", 1)):
        return None
    return find_creator(node, registry)


def text_of(node: NodeProto, attribute: str, default: str) -> str:
    """A text attribute of a `NodeProto`."""
    for entry in node.attribute:
        if entry.name == attribute:
            return str(entry.s.decode("utf-8", "replace"))
    return default


def find_creator(node: NodeProto, registry: PluginRegistry) -> AnyCreator | None:
    """Find the creator for a `NodeProto` by its type, `plugin_version` and `plugin_namespace`.

    Without a namespace the node's domain is tried too.
    """
    version = text_of(node, "plugin_version", "1")
    namespace = text_of(node, "plugin_namespace", "")
    return _find(registry, node.op_type, version, namespace, node.domain)


def creator_of(node: ir.Node, registry: PluginRegistry) -> AnyCreator | None:
    """`find_creator` for an `onnx_ir.Node`."""
    version, namespace = _text(node, "plugin_version", "1"), _text(node, "plugin_namespace", "")
    return _find(registry, node.op_type, version, namespace, node.domain)


def _find(
    registry: PluginRegistry, kind: str, version: str, namespace: str, domain: str
) -> AnyCreator | None:
    creator = registry.find(kind, version, namespace)
    if creator is None and domain and not namespace:
        creator = registry.find(kind, version, domain)
    return creator


def check_control_flow(
    graph: GraphProto, is_plugin: Callable[[NodeProto], bool], where: str
) -> None:
    """Refuse plugins inside the bodies of If, Loop and Scan, at any depth.

    Raises:
        ModelError: a plugin is in a body; node, body and plugin are named.
    """
    for node in graph.node:
        check_bodies(node, is_plugin, where)


def check_bodies(node: NodeProto, is_plugin: Callable[[NodeProto], bool], where: str) -> None:
    """Refuse plugins inside the bodies of one node, as `check_control_flow`.

    Raises:
        ModelError: a plugin is in a body; node, body and plugin are named.
    """
    for attribute in node.attribute:
        bodies = [attribute.g] if attribute.HasField("g") else attribute.graphs
        for body in bodies:
            plugin = next(filter(is_plugin, body.node), None)
            if plugin is not None:
                raise ModelError(
                    f"plugin {plugin.op_type} (node {given_name(plugin)!r}) is in the "
                    f"{attribute.name} of {node.op_type} (node {given_name(node)!r})",
                    where=where,
                    expected="plugins in the graph itself, not inside If, Loop or Scan",
                    fix="export the model without control flow: one branch of an If, the turns "
                    "of a Loop or Scan written out",
                    code="plugin-in-control-flow",
                )
            check_control_flow(body, is_plugin, where)


def unknown_nodes(network: Network) -> Iterator[ir.Node]:
    """Nodes of the network (`onnx_ir.Node`) that ONNX does not know."""
    names = {(u.domain, u.name) for u in network.unknown_operators()}
    for node in network.model.graph.all_nodes():
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) in names:
            yield node


def unknown_error(
    network: Network, runtime: str, registry: PluginRegistry, where: str, said: str = ""
) -> UnknownOperatorsError | None:
    """Word the error for operators unknown to ONNX, runtime and plugins; None if there are none.

    `said` is the message of the runtime that refused them.
    """
    operators, hints, kinds = [], [], []
    for node in unknown_nodes(network):
        if node.name in network.plugins:
            continue
        version = _text(node, "plugin_version", "1")
        namespace = _text(node, "plugin_namespace", "")
        if creator_of(node, registry) is not None or node.op_type in kinds:
            continue
        kinds.append(node.op_type)
        full = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        fields = ", ".join(attribute_names(node)) or "none"
        operators.append(f"{full} (node {node.name!r}, version {version}, fields: {fields})")
        hints += _hints(node.op_type, version, namespace, registry)
    if not operators:
        return None
    rest = f" and {len(operators) - MOST_LISTED} more" if len(operators) > MOST_LISTED else ""
    first = kinds[0]
    return UnknownOperatorsError(
        f"{len(operators)} operator(s) that {runtime} does not know: "
        + "; ".join(operators[:MOST_LISTED])
        + rest,
        where=where,
        expected="operators of ONNX, or a plugin registered under that name, version and namespace",
        fix=[
            *hints[:MOST_LISTED],
            *silent_file_hints(get_plugin_registry()),
            f"write it: headrace init --plugin {first} makes a template, and "
            f"custom-lib-path={first.lower()}_plugin.py in the config loads it, as does --plugins= "
            "of headrace trtexec",
            IN_CPP,
            "or export the model without it and leave that step to the parser",
            *([said] if said else []),
        ],
    )


def silent_file_hints(registry: PluginRegistry) -> list[str]:
    """List advice about files that were loaded and registered nothing, one text a file."""
    silent = [path for path in loaded_files() if not registry.come_from(path)]
    return [hint for path in silent for hint in _silent_hints(path)]


def _silent_hints(path: Path) -> list[str]:
    if path.suffix.lower() not in PYTHON_SUFFIXES:
        return headrace._wiring.library_hints(TWINS.get(path.name, path))
    return [
        f"{path.name} was loaded and registers no creator: does it make one, and is it "
        "registered (register_creator, or a class of a creator that takes no arguments)?"
    ]


def _hints(name: str, version: str, namespace: str, registry: PluginRegistry) -> list[str]:
    near = registry.near(name, version, namespace)
    if registry.versions(name):
        return [f"{text}: the node's plugin_version and plugin_namespace decide" for text in near]
    return near


def _text(node: ir.Node, attribute: str, default: str) -> str:
    entry = node.attributes.get(attribute)
    return str(entry.value) if entry is not None else default
