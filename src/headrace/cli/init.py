"""`headrace init`: files to begin with."""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace._core.errors import HeadraceError, ModelError
from headrace._core.files import os_reason, write_where_named
from headrace._core.findings import Finding
from headrace.cli.options import run_options
from headrace.cli.output import echo, print_notices

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey

EPILOG = """\b
Examples:
  headrace init yolov8n.onnx
  headrace init detector.onnx -o detector --cpp
  headrace init centerface.onnx --size 640x480
  headrace init net.onnx --set net-scale-factor=0.003921568627
  headrace init --plugin MyLayer_TRT
  headrace init --plugin MyLayer_TRT --model detector.onnx -o plugins
"""


@click.command(epilog=EPILOG)
@click.argument("bare", required=False, type=click.Path(path_type=Path), metavar="[MODEL.onnx]")
@click.option("--size", metavar="WIDTHxHEIGHT",
              help="Size of the images, where MODEL leaves it open or was written for another "
              "one; then a copy of it is written, too.")  # fmt: skip
@click.option("--cpp", is_flag=True,
              help="Write the parser in C++, with a Makefile.")  # fmt: skip
@click.option("--plugin", "name", metavar="NAME",
              help="A Python plugin for ONNX nodes of type NAME.")  # fmt: skip
@click.option("--model", type=click.Path(path_type=Path), metavar="MODEL.onnx",
              help="Take fields, version and outputs from such a node in it.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Where to write. Default: here for plugins, else a folder named like the "
              "model.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace files that are there.")
@run_options("init")
def init(
    bare: Path | None,
    size: str | None,
    cpp: bool,
    name: str | None,
    model: Path | None,
    output: Path | None,
    force: bool,
    settings: list[GivenKey],
) -> None:
    """Write the files that MODEL.onnx needs to run with a config, or a plugin to begin with.

    Of a model: a config with the reason of each value, the labels, and where no built-in parser
    reads the outputs, a parser with their names and shapes in place and a test of it.

    Of a plugin: it and a test of it, both of which work as they are. It computes y = x * scale +
    bias, or with --model y = x from the fields of your node: change get_output_shapes and enqueue.
    """
    if (bare is None) == (name is None):
        raise click.UsageError("give MODEL.onnx or --plugin NAME")
    if bare is None and (size or cpp or settings):
        raise click.UsageError("--size, --cpp and --set go with MODEL.onnx")
    if bare is not None:
        if model is not None:
            raise click.UsageError("--model goes with --plugin")
        _model(bare, size, cpp, output or Path(bare.stem), force, settings)
    elif name is not None:
        _plugin(name, model, output or Path("."), force)


def _model(
    model: Path, size: str | None, cpp: bool, folder: Path, force: bool, keys: list[GivenKey]
) -> None:
    from headrace.config.overrides import distributed
    from headrace.infer.recognise.recognise import recognise_for_init
    from headrace.infer.starters.writing import CONFIG, files_for

    (overrides,) = distributed(keys, [model.name])
    path, copied, fields = model, None, dict[str, Any]()
    replaced = None
    if size is not None:
        path, copied, fields, replaced = _sized(model, size, folder, force)
    try:
        recognition = recognise_for_init(path, fields, overrides)
        files = files_for(recognition, folder, cpp=cpp)
        _write({folder / file: text for file, text in files.items()}, force)
    except HeadraceError:
        if copied is not None:
            for leftover in copied.parent.glob(f"{glob.escape(copied.name)}*"):  # its engine, too
                leftover.unlink()
            if replaced is not None:
                copied.write_bytes(replaced)
        raise
    print_notices(recognition.notices)
    if copied is not None:
        echo(copied)
    for file in files:
        echo(folder / file)
    sources = [f for f in files if f.endswith(("_parser.py", "_parser.cpp"))]
    for file in sources:
        if not file.startswith("test_"):
            echo(f"now write it: {folder / file} says what the outputs mean", err=True)
    for file in sources:
        if file.startswith("test_"):
            echo(f"try it: headrace exec {folder / file}", err=True)
    if cpp:
        echo(f"compile it: make -C {folder}", err=True)
    echo(f"run it: headrace run {folder / CONFIG} video.mp4 -o out.mp4", err=True)


def _sized(
    model: Path, size: str, folder: Path, force: bool
) -> tuple[Path, Path | None, dict[str, Any], bytes | None]:
    """Copy the model for another size of images, if its own is fixed.

    Returns:
        The model to describe, the copy or None, fields for the config, and the bytes of a file
        that the copy replaced.
    """
    from headrace.infer.recognise.resizing import resized
    from headrace.network import network_from_onnx

    match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", size)
    if match is None or not (int(match[1]) and int(match[2])):
        raise click.UsageError(f"--size {size}: give WIDTHxHEIGHT, as 640x480")
    width, height = int(match[1]), int(match[2])
    axes = network_from_onnx(model, of_images=True).inputs[0].shape
    planes = axes[2:] if len(axes) == 4 and axes[1] in (1, 3) else axes[1:3]
    if not all(isinstance(axis, int) for axis in planes):
        channels = next((a for a in axes[1:] if a in (1, 3)), 3)
        return model, None, {"infer_dims": (channels, height, width)}, None
    if tuple(planes) == (height, width):
        return model, None, {}, None
    copy = folder / f"{model.stem}_{width}x{height}.onnx"
    replaced = copy.read_bytes() if force and copy.is_file() else None
    _write({copy: resized(model, width, height)}, force)
    return copy, copy, {}, replaced


def _write(contents: Mapping[Path, str | bytes], force: bool) -> None:
    """Write files, all or none.

    Raises:
        HeadraceError: one is there already, or cannot be written.
    """
    there = [str(path) for path in contents if path.exists()]
    if there and not force:
        raise HeadraceError(
            f"{', '.join(there)} {'is' if len(there) == 1 else 'are'} there already",
            fix="--force overwrites, -o chooses another folder",
        )
    for path in contents:
        if path.is_dir():
            raise HeadraceError("is a folder", where=str(path), expected="a file, or nothing")
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_where_named(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        where = str(error.filename or next(iter(contents)).parent)
        raise HeadraceError(f"cannot be written: {os_reason(error)}", where=where) from error


def _plugin(name: str, model: Path | None, output: Path, force: bool) -> None:
    from headrace.plugins.template import DEFAULT, class_name, plugin_template, template_test

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
    _write(texts, force)
    for path in texts:
        echo(path)
    echo(f"try it: headrace exec {test}", err=True)
    echo(f"use it: custom-lib-path={file.name} in the config", err=True)


def _there_already(name: str, version: str) -> list[Finding]:
    """A warning if nodes of that type are computed without the plugin."""
    import onnx

    from headrace.plugins.lookup import is_builtin
    from headrace.plugins.registry import known_plugins

    if is_builtin(name, onnx.defs.onnx_opset_version()):
        text = (
            f"{name} is an operator of ONNX: runtimes compute such nodes, and a plugin {name} is "
            "called only for nodes of another domain; choose another name if that is not meant"
        )
        return [Finding("plugin-name-of-onnx", "warning", text)]
    registry = known_plugins()
    creator = registry.find(name, version)
    if creator is None:
        return []
    whose = "headrace has" if id(creator) in registry.replaceable else "an installed package has"
    text = f"{whose} a plugin {name}, version {version}, already"
    if id(creator) in registry.replaceable:
        text += ": yours replaces it where it is loaded"
    return [Finding("plugin-name-taken", "warning", text)]


def _node(model: Path, name: str) -> tuple[Any, str, int]:
    """Fields, version and number of outputs of the first node of that type."""
    from headrace.network import network_from_onnx
    from headrace.plugins.fields import NODE_ATTRIBUTES
    from headrace.plugins.template import TemplateField

    network = network_from_onnx(model)
    for node in network.model.graph.all_nodes():
        if node.op_type == name:
            fields = tuple(
                TemplateField(key, attribute.type.name)
                for key, attribute in node.attributes.items()
                if key not in NODE_ATTRIBUTES
            )
            version = node.attributes.get("plugin_version")
            return fields, str(version.value) if version is not None else "1", len(node.outputs)
    kinds = sorted({u.name for u in network.unknown_operators()})
    raise ModelError(
        f"no node is a {name}",
        where=str(model),
        expected=f"one of {', '.join(kinds)}" if kinds else "a model with such a node",
    )
