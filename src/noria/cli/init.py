"""`noria init`: files to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from noria._core.errors import ModelError, NoriaError
from noria._core.notices import Notice
from noria.cli.output import print_notices

EPILOG = """\b
Examples:
  noria init --plugin MyLayer_TRT
  noria init --plugin MyLayer_TRT --model detector.onnx -o plugins
"""


@click.command(epilog=EPILOG)
@click.option("--plugin", "name", metavar="NAME", required=True,
              help="A Python plugin for ONNX nodes of type NAME.")  # fmt: skip
@click.option("--model", type=click.Path(path_type=Path), metavar="MODEL.onnx",
              help="Take fields, version and outputs from such a node in it.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), default=".", metavar="FOLDER",
              help="Where to write.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace files that are there.")
def init(name: str, model: Path | None, output: Path, force: bool) -> None:
    """Write a plugin and a test of it, both of which work as they are.

    The plugin computes y = x * scale + bias, or with --model y = x from the fields of your node:
    change get_output_shapes and enqueue.
    """
    from noria.plugins.template import DEFAULT, class_name, plugin_template, template_test

    low = class_name(name).lower()
    file, test = output / f"{low}_plugin.py", output / f"test_{low}_plugin.py"
    fields, version, outputs = (DEFAULT, "1", 1) if model is None else _node(model, name)
    print_notices(_there_already(name, version))
    texts = {
        file: plugin_template(
            name, version=version, fields=fields, outputs=outputs, file=file.name
        ),
        test: template_test(name, version=version, fields=fields, outputs=outputs, file=file.name),
    }
    there = [str(path) for path in texts if path.exists()]
    if there and not force:
        raise NoriaError(
            f"{', '.join(there)} is there already",
            fix="--force replaces it, -o chooses another folder",
        )
    try:
        output.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            path.write_text(text)
    except OSError as error:
        raise NoriaError(f"cannot be written: {error.strerror}", where=str(output)) from error
    for path in texts:
        click.echo(path)
    click.echo(f"try it: noria exec {test}", err=True)
    click.echo(f"use it: custom-lib-path={file.name} in the config", err=True)


def _there_already(name: str, version: str) -> list[Notice]:
    """A warning if nodes of that type are computed without the plugin."""
    import onnx

    from noria.plugins.lookup import is_builtin
    from noria.plugins.registry import known_plugins

    if is_builtin(name, onnx.defs.onnx_opset_version()):
        text = (
            f"{name} is an operator of ONNX: runtimes compute such nodes, and a plugin {name} is "
            "called only for nodes of another domain; choose another name if that is not meant"
        )
        return [Notice("warning", text)]
    registry = known_plugins()
    creator = registry.find(name, version)
    if creator is None:
        return []
    whose = "noria has" if id(creator) in registry.replaceable else "an installed package has"
    text = f"{whose} a plugin {name}, version {version}, already"
    if id(creator) in registry.replaceable:
        text += ": yours replaces it where it is loaded"
    return [Notice("warning", text)]


def _node(model: Path, name: str) -> tuple[Any, str, int]:
    """Fields, version and number of outputs of the first node of that type."""
    from noria.network import network_from_onnx
    from noria.plugins.fields import NODE_ATTRIBUTES
    from noria.plugins.template import TemplateField

    network = network_from_onnx(model)
    for node in network.model.graph.all_nodes():
        if node.op_type == name:
            fields = tuple(
                TemplateField(key, attribute.type.name)
                for key, attribute in node.attributes.items()
                if key not in NODE_ATTRIBUTES
            )
            found = node.attributes.get("plugin_version")
            return fields, str(found.value) if found is not None else "1", len(node.outputs)
    kinds = sorted({u.name for u in network.unknown_operators()})
    raise ModelError(
        f"no node is a {name}",
        where=str(model),
        expected=f"one of {', '.join(kinds)}" if kinds else "a model with such a node",
    )
