"""`headrace show`: a config with origins, a model, or an engine."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace._core.errors import ConfigError, EngineError, HeadraceError, ModelError
from headrace._core.formats.archives import is_bare_model, model_file
from headrace._core.formats.foreign import onnx_beside
from headrace._core.formats.tensorrt import is_tensorrt_file, read_engine_facts, tensors_text
from headrace.cli.inputs import is_engine, is_model, load_config, refuse_options
from headrace.cli.options import run_options
from headrace.cli.output import echo, print_json, print_table
from headrace.cli.tables import counted_layers, layers_of_network, print_layers
from headrace.config.wrong_file import refuse_folder

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.infer.run_options import RunOptions


EPILOG = """\b
Examples:
  headrace show config_infer_primary.txt
  headrace show config_infer_primary.yml --set-only
  headrace show pipeline.yml
  headrace show model.onnx --layers
  headrace show model.caffemodel --with deploy.prototxt
  headrace show model.onnx_b1_gpu0_fp32.engine --json
"""


@click.command(epilog=EPILOG)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--set-only", is_flag=True, help="Of a config, only the values that the file sets.")
@click.option("--layers", is_flag=True, help="List every layer of the network.")
@click.option("--with", "partner", type=click.Path(path_type=Path), metavar="FILE",
              help="The other file of a Caffe or Darknet model.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@run_options("show")
def show(
    file: Path,
    set_only: bool,
    layers: bool,
    partner: Path | None,
    as_json: bool,
    run: RunOptions,
    settings: list[GivenKey],
) -> int:
    """Show FILE: a config, a pipeline file, a model (.onnx, .caffemodel, .uff, .weights) or engine.

    A config is shown with the effective value of every key, where each comes from, what its model
    takes and gives, which parser decodes, and why headrace run would refuse it, if it would. The
    network that a function of the custom library makes is made in a process of its own.
    """
    settings = [*settings, *run.keys()]
    if os.path.isdir(file):  # unlike Path.is_dir, no error where it may not look
        refuse_folder(file)
        raise ConfigError("this is a folder", where=str(file), expected="a config, model or engine")
    engine = is_engine(file) or is_tensorrt_file(file)
    if engine or is_model(file):
        refuse_options(file, settings)
    if engine:
        data = _engine_data(file)
    elif is_model(file):
        data = _model_data(file, partner)
    else:
        from headrace.cli.show_config import ConfigView, show_pipeline
        from headrace.config import is_pipeline_file

        view = ConfigView(set_only, layers, as_json)
        if is_pipeline_file(file):
            return show_pipeline(file, settings, view)
        data, code = view.show(load_config(file, settings))
        if as_json:
            print_json(data)
        return code
    if as_json:
        print_json(data)
        return 0
    _print_engine_or_model(data, layers=layers)
    return 0


_TEXTS = {".caffemodel": ".prototxt", ".weights": ".cfg"}


def _model_data(path: Path, partner: Path | None) -> dict[str, Any]:
    """Inputs, outputs, layers and counts of a model; see `read_model`."""
    from headrace.infer.parsers import suggest

    path = model_file(path)
    network, files = read_model(path, partner)
    summary = network.summary()
    data = _plain(summary)
    assert isinstance(data, dict)
    data |= _operators_of_plugins(network)
    data["files"] = [str(file) for file in files]
    data["opsets"] = {domain or "ai.onnx": v for domain, v in summary.opsets.items()}
    recognised = _recognised(path) if is_bare_model(path) and not network.is_large else {}
    if "images" not in recognised:
        data["built-in parsers that fit"] = suggest(network.outputs) or ["none"]
    data |= recognised
    if not network.is_large:
        data["layers"] = layers_of_network(network)
    return data | (_openvino_facts(path, data) if network.only_runtime == "openvino" else {})


def _openvino_facts(path: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of an OpenVINO model's own layers, in place of those of the node that holds it."""
    from headrace.network.openvino.reader import read_openvino

    model = read_openvino(path)
    constants = [layer for layer in model.layers.values() if layer.kind == "Const"]
    operators = Counter(layer["operator"] for layer in data.get("layers", ()))
    return {
        "ir_version": model.version,
        "opsets": {},
        "nodes": sum(operators.values()),
        "operators": dict(operators.most_common()),
        "parameters": sum(o.elements for layer in constants for o in layer.outputs.values()),
        "runs_on": "openvino alone",
    }


def _recognised(path: Path) -> dict[str, str]:
    """Head, classes, images as `headrace run` prints them for a bare model, or why it cannot."""
    from headrace.infer.recognise.recognise import recognise_for_init

    try:
        recognition = recognise_for_init(path, {}, save=False)
    except HeadraceError as error:
        return {"as_a_bare_model": f"{error:brief}"}
    model, images, source, *unused = recognition.notices
    lines = {
        "as_a_bare_model": model.data["text"],
        "images": images.data["text"],
        "read_from": source.data["text"],
    }
    return lines | ({"warning": f"{unused[0]:brief}"} if unused else {})


def _operators_of_plugins(network: Any) -> dict[str, Any]:
    """Operators that ONNX does not define: `plugins`, which are there, and `unknown_operators`."""
    from headrace.plugins.lookup import find_creator, unknown_nodes
    from headrace.plugins.registry import known_plugins

    if not network.unknown_operators():
        return {"plugins": [], "unknown_operators": []}
    from headrace.network.ir import ir

    registry = known_plugins()
    plugins: dict[object, dict[str, Any]] = {}
    unknown: dict[Any, dict[str, Any]] = {}
    for node in unknown_nodes(network):
        creator = find_creator(ir.serde.serialize_node(node), registry)
        if creator is not None:
            own = (creator.name, creator.plugin_version, creator.plugin_namespace)
            entry = plugins.setdefault(own, dict(
                zip(("name", "version", "namespace"), own, strict=True)
            ))  # fmt: skip
            entry["standard"] = id(creator) in registry.replaceable
        else:
            entry = unknown.setdefault(
                (node.domain, node.op_type), {"domain": node.domain, "name": node.op_type}
            )
            others = [version for version, _ in registry.versions(node.op_type)]
            entry |= {"plugin_versions": others} if others else {}
        entry.setdefault("nodes", []).append(node.name or "")
    return {"plugins": list(plugins.values()), "unknown_operators": list(unknown.values())}


def _plugin_texts(rows: Sequence[dict[str, object]]) -> list[str]:
    texts = []
    for row in rows:
        kind = "standard, " if row["standard"] else ""
        space = f", namespace {row['namespace']}" if row["namespace"] else ""
        texts.append(f"{row['name']} ({kind}version {row['version']}{space}): {_nodes(row)}")
    return texts


def _unknown_texts(rows: Sequence[dict[str, Any]]) -> list[str]:
    texts = []
    for row in rows:
        full = f"{row['domain']}::{row['name']}" if row["domain"] else row["name"]
        others = row.get("plugin_versions")
        hint = f"the plugin is there as version {' and '.join(others)}" if others else (
            "no plugin is there; custom-lib-path loads yours, headrace init --plugin "
            f"{row['name']} writes one"
        )  # fmt: skip
        texts.append(f"{full}: {_nodes(row)}; {hint}")
    return texts


def _nodes(row: dict[str, Any]) -> str:
    names, most = row["nodes"], 3
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(repr(n) for n in names[:most])}{more}"


def read_model(path: Path, partner: Path | None = None) -> tuple[Any, list[Path]]:
    """The network of a model file and the files it was read from.

    `partner` is the other file of a Caffe or Darknet model; None looks for it beside `path`.

    Raises:
        ModelError: as the importer of the format; the other file is not found.
    """
    suffix = path.suffix.lower()
    if is_bare_model(path):
        from headrace.network import network_from_onnx

        return network_from_onnx(path, of_images=True), [path]
    if suffix == ".uff":
        from headrace.network.uff.importer import network_from_uff

        return network_from_uff(path), [path]
    other = partner or _partner(path)
    text, weights = (other, path) if suffix in _TEXTS else (path, other)
    if text.suffix.lower() == ".cfg" or weights.suffix.lower() == ".weights":
        from headrace.network.darknet.importer import network_from_darknet

        return network_from_darknet(text, weights), [text, weights]
    from headrace.network.caffe.importer import network_from_caffe

    return network_from_caffe(text, weights), [text, weights]


def _partner(path: Path) -> Path:
    """The other file: of the same name, else the only one of its kind in the folder."""
    suffix = path.suffix.lower()
    partner_suffix = _TEXTS.get(suffix) or {v: k for k, v in _TEXTS.items()}[suffix]
    same = path.with_suffix(partner_suffix)
    if same.is_file():
        return same
    near = sorted(p for p in path.parent.glob(f"*{partner_suffix}") if p.is_file())
    if len(near) == 1:
        return near[0]
    hint = f"the folder has {', '.join(p.name for p in near[:5])}" if near else "there is none"
    raise ModelError(
        f"{path.name} is one of two files; which {partner_suffix} belongs to it? {hint}",
        where=str(path),
        fix=f"headrace show {path.name} --with FILE{partner_suffix}",
    )


def _engine_data(path: Path) -> dict[str, Any]:
    """The header of a plan, its layers included."""
    from headrace.cli.build import tactic_rows
    from headrace.engine import Plan
    from headrace.engine.layers import layers_of

    if is_tensorrt_file(path):
        return _foreign_engine_data(path)
    plan = Plan.load(path)
    header = plan.header
    data = _plain(plan.describe())
    assert isinstance(data, dict)
    model = header.model
    data["decisions"] = [decision.to_json() for decision in header.decisions]
    data["hashes"] = {
        "model": model.sha256,
        **{f"external {part.name}": part.sha256 for part in model.external},
        **{part.name: part.sha256 for part in model.companions},
        **{f"blob {blob.name}": blob.sha256 for blob in header.blobs},
    }
    data["made with"] = [line for line in model.recipe.split("\n") if line]
    if header.rules is not None:
        data["rules"] = {n: v for n, v in header.rules.to_dict().items() if v is not None}
    data["tactics"] = tactic_rows(plan)
    data["tuning"] = None if header.tuning is None else header.tuning.to_dict()
    data["layers"] = [asdict(layer) for layer in layers_of(plan)]
    return data


def _foreign_engine_data(path: Path) -> dict[str, Any]:
    """Facts of an engine of TensorRT: its tensors where TensorRT runs it, else the names in it."""
    from headrace.engine.tensorrt_plan import plan_from_tensorrt

    facts = read_engine_facts(path)
    data: dict[str, Any] = {"path": str(path), "format": "a TensorRT engine"}
    data["built_by"] = facts.built_by
    if facts.gpu:
        data["built_on"] = facts.gpu
    try:
        plan = plan_from_tensorrt(path)
    except EngineError as error:
        data["runs_here"] = f"no: {error.__cause__ or error:brief}"
        data["names_in_it"] = list(facts.names)
        tables = {"inputs": facts.inputs, "outputs": facts.outputs, "shapes": facts.shapes}
        for kind, tensors in tables.items():
            if tensors:
                data[f"{kind}_in_it"] = {name: list(shape) for name, shape in tensors.items()}
    else:
        data["runs_here"] = "yes"
        data |= {"inputs": _plain(plan.inputs), "outputs": _plain(plan.outputs)}
    data["plugins"] = list(facts.plugins)
    if facts.metadata:
        data["metadata"] = _plain(dict(facts.metadata))
    data["size_bytes"] = path.stat().st_size
    model = onnx_beside(path)
    data["onnx_beside_it"] = "none" if model is None else str(model)
    return data


def _print_engine_or_model(data: dict[str, Any], *, layers: bool) -> None:
    """For people: fields, tactics if they were compared, layers if asked for."""
    for key in ("inputs_in_it", "outputs_in_it", "shapes_in_it"):
        if shapes := data.get(key):
            data[key] = tensors_text(shapes)
    if "unknown_operators" in data:
        data["plugins"] = _plugin_texts(data["plugins"])
        data["unknown_operators"] = _unknown_texts(data["unknown_operators"])
    if "decisions" in data:
        data["decisions"] = "\n".join(
            ("warning: " if row["level"] == "warning" else "")
            + (f"{row['where']}: {row['message']}" if row["where"] else row["message"])
            for row in data["decisions"]
        )
        data["hashes"] = "\n".join(f"{name}: {digest}" for name, digest in data["hashes"].items())
        del data["model_sha256"]  # one of the hashes
    tactics, tuning = data.pop("tactics", []), data.pop("tuning", None)
    rows = data.pop("layers", [])
    if rows:
        data["layers"] = counted_layers(rows, shown=layers)
    _print_fields(data)
    if tuning is not None:
        _print_tactics(tactics, tuning)
    if layers and rows:
        print_layers(rows)


def _print_tactics(tactics: Sequence[dict[str, Any]], tuning: dict[str, Any]) -> None:
    """All tries of a tuning, the best first."""
    by = "items_per_s" if tuning["objective"] == "throughput" else "latency_ms"
    sign = -1 if by == "items_per_s" else 1
    rows = sorted(tactics, key=lambda t: (not t["chosen"], t[by] is None, sign * (t[by] or 0)))
    heads = ("", "tactic", "outcome", "items/s", "ms a run", "difference", "load s", "note")
    table = []
    for row in rows:
        numbers = (row["items_per_s"], row["latency_ms"], row["error"], row["load_s"])
        texts = ("" if n is None else f"{n:.4g}" for n in numbers)
        chosen = "*" if row["chosen"] else ""
        table.append((chosen, row["tactic"], row["outcome"], *texts, row["note"]))
    where = f"{tuning['machine']}, {tuning['cores']} cores"
    echo(f"tuned for {tuning['objective']}, batch {tuning['items']}, on {where}, in "
        f"{tuning['spent_s']:.1f} s" + (" (timing cache)" if tuning["cached"] else ""))  # fmt: skip
    print_table(heads, table, right=heads[3:7])


def _plain(value: object) -> Any:
    """Dataclasses, paths and specs as JSON data."""
    from headrace.network.tensor_spec import TensorSpec

    if isinstance(value, TensorSpec):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {k: _plain(getattr(value, k)) for k in (f.name for f in fields(value))}
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _print_fields(data: dict[str, object]) -> None:
    width = max((len(k) for k in data), default=0)
    for key, value in data.items():
        text = _text(value).replace("\n", "\n" + " " * (width + 2))
        echo(f"{key.replace('_', ' '):<{width}}  {text}", lines=True)


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_text(v)}" for k, v in value.items()) or "none"
    if isinstance(value, list):
        return "; ".join(_text(v) for v in value) or "none"
    return "none" if value in (None, "") else str(value)
