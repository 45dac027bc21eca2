"""A Python plugin to begin with: fields, types, shapes, arithmetic, creator, and a test of it."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass

from headrace._core.errors import HeadraceError

_TYPES = {
    "FLOAT": ("FLOAT32", "1.0"),
    "FLOATS": ("FLOAT32", "(1.0,)"),
    "INT": ("INT32", "1"),
    "INTS": ("INT32", "(1,)"),
    "STRING": ("CHAR", "''"),
}
"""Kind of an ONNX attribute -> type of the field, default in Python."""


@dataclass(frozen=True, slots=True)
class TemplateField:
    """A field of the plugin to be written.

    `kind` is that of the ONNX attribute: FLOAT, FLOATS, INT, INTS or STRING.
    """

    name: str
    kind: str


DEFAULT = (TemplateField("scale", "FLOAT"), TemplateField("bias", "FLOAT"))

_HEAD = '''"""The plugin {name}, for ONNX nodes of that type.

Load it with custom-lib-path={file}, or with
headrace.plugins.get_plugin_registry().load_library("{file}").
"""

from __future__ import annotations

import numpy as np

from headrace.plugins import (
    DataType,
    IPluginCreatorV3One,
    IPluginV3,
    IPluginV3OneBuild,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
    PluginField,
    PluginFieldCollection,
    PluginFieldType,
    TensorFormat,
    array_at,
)

NAME, VERSION = {name!r}, {version!r}


class {cls}(IPluginV3, IPluginV3OneCore, IPluginV3OneBuild, IPluginV3OneRuntime):
    """{what}"""

    def __init__(self{arguments}):
        IPluginV3.__init__(self)
        IPluginV3OneCore.__init__(self)
        IPluginV3OneBuild.__init__(self)
        IPluginV3OneRuntime.__init__(self)
        self.plugin_name, self.plugin_version, self.plugin_namespace = NAME, VERSION, ""
        self.num_outputs = {outputs}
{keep}
    def clone(self):
        return {cls}({pass_on})

    def get_capability_interface(self, type):
        return self

    # --- building: types and shapes ---

    def get_output_data_types(self, input_types):
        return [input_types[0]] * self.num_outputs

    def get_output_shapes(self, inputs, shape_inputs, expr_builder):
        # inputs[i][axis] is an expression; expr_builder.constant(5) and
        # expr_builder.operation(DimensionOperation.FLOOR_DIV, a, b) make others
        return [inputs[0]] * self.num_outputs

    def supports_format_combination(self, pos, in_out, num_inputs):
        desc = in_out[pos].desc
        return desc.type == DataType.FLOAT and desc.format == TensorFormat.LINEAR

    def configure_plugin(self, inputs, outputs):
        pass

    # --- running: addresses become arrays ---

    def attach_to_context(self, context):
        return self.clone()

    def set_tactic(self, tactic):
        pass

    def on_shape_change(self, inputs, outputs):
        pass

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        x = array_at(inputs[0], input_desc[0].dims, input_desc[0].type)
        for desc, address in zip(output_desc, outputs):
            y = array_at(address, desc.dims, desc.type, writable=True)
            {compute}

    def get_fields_to_serialize(self):
        return PluginFieldCollection(
            [
{saved}
            ]
        )


class {cls}Creator(IPluginCreatorV3One):
    """Makes a {cls} from the attributes of a node, and from what an engine kept."""

    def __init__(self):
        IPluginCreatorV3One.__init__(self)
        self.name, self.plugin_version, self.plugin_namespace = NAME, VERSION, ""
        self.field_names = PluginFieldCollection(
            [
{declared}
            ]
        )

    def create_plugin(self, name, fields, phase):
        given = {{field.name: field for field in fields}}
        values = {{}}
{read}
        return {cls}(**values)
'''

_TEST = '''"""The plugin {name} in a network of one node, against NumPy."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnx import TensorProto, helper

from headrace.engine import BuildOptions, build
from headrace.network import network_from_onnx
from headrace.plugins import get_plugin_registry


def test_{low}(tmp_path):
    get_plugin_registry().load_library(Path(__file__).with_name({file!r}))
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    names = {names}
    key = {{"plugin_version": {version!r}}}  # with the name, what the registry looks for
    node = helper.make_node({name!r}, ["x"], names, name="mine", **key{attributes})
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3, 4, 5])
    graph = helper.make_graph([node], "g", [value("x")], [value(n) for n in names])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        tmp_path / "model.onnx",
    )
    plan = build(network_from_onnx(tmp_path / "model.onnx"), BuildOptions(max_batch=2))
    plan.save(tmp_path / "model.engine")
    with plan.open_session() as session:
        result = session.run({{"x": x}})
    for name in names:
        np.testing.assert_allclose(result[name], {expected}, rtol=1e-6)


if __name__ == "__main__":  # without pytest
    with TemporaryDirectory() as folder:
        test_{low}(Path(folder))
    print({name!r}, "computes what it shall")
'''


def plugin_template(
    name: str,
    *,
    version: str = "1",
    fields: Sequence[TemplateField] = DEFAULT,
    outputs: int = 1,
    file: str,
) -> str:
    """The source of a plugin.

    `fields` are the attributes of nodes called `name`; those that no field can hold are left out.
    `file` is named in the comments.

    Raises:
        HeadraceError: a name that cannot be one.
    """
    cls = class_name(name)
    known = [f for f in fields if f.kind in _TYPES and f.name.isidentifier()]
    plain = [f for f in known if not keyword.iskeyword(f.name)]
    scaled = tuple(plain) == DEFAULT
    arguments = "".join(f", {f.name}={_TYPES[f.kind][1]}" for f in plain)
    keep = "".join(f"        self.{f.name} = {f.name}\n" for f in plain)
    return _HEAD.format(
        name=name,
        version=version,
        cls=cls,
        file=file,
        what="y = x * scale + bias." if scaled else "y = x, to begin with.",
        arguments=arguments,
        outputs=outputs,
        keep=keep,
        pass_on=", ".join(f"self.{f.name}" for f in plain),
        compute="y[...] = x * np.float32(self.scale) + np.float32(self.bias)"
        if scaled
        else "y[...] = x  # the arithmetic",
        declared="\n".join(_declared(f) for f in plain),
        saved="\n".join(_saved(f) for f in plain),
        read="\n".join(_read(f) for f in plain) or "        del given",
    )


def template_test(
    name: str,
    *,
    version: str = "1",
    fields: Sequence[TemplateField] = DEFAULT,
    outputs: int = 1,
    file: str,
) -> str:
    """The source of a test for `plugin_template` of the same arguments."""
    scaled = tuple(fields) == DEFAULT
    return _TEST.format(
        name=name,
        version=version,
        low=class_name(name).lower(),
        file=file,
        names=[f"y{i}" for i in range(outputs)],
        attributes=", scale=3.0, bias=0.5" if scaled else "",
        expected="3 * x + 0.5" if scaled else "x",
    )


def class_name(name: str) -> str:
    """A class name for a plugin.

    Raises:
        HeadraceError: there is nothing in it to make one of.
    """
    plain = re.sub(r"\W+", "_", name).strip("_")
    if not plain or not re.fullmatch(r"[\w.:-]+", name):
        raise HeadraceError(
            f"{name!r} cannot be the name of a plugin", expected="letters, digits, _ - . :"
        )
    return plain if not plain[0].isdigit() else f"P{plain}"


def _declared(field: TemplateField) -> str:
    kind = _TYPES[field.kind][0]
    return f'                PluginField("{field.name}", None, PluginFieldType.{kind}),'


def _saved(field: TemplateField) -> str:
    kind = _TYPES[field.kind][0]
    if kind == "CHAR":
        value = f"self.{field.name}.encode()"
    else:
        dtype = {"FLOAT32": "np.float32", "INT32": "np.int32"}[kind]
        inner = f"self.{field.name}" if field.kind.endswith("S") else f"[self.{field.name}]"
        value = f"np.array({inner}, {dtype})"
    return f'                PluginField("{field.name}", {value}, PluginFieldType.{kind}),'


def _read(field: TemplateField) -> str:
    values = {
        "FLOAT": "float(given[{0!r}].data[0])",
        "FLOATS": "tuple(map(float, given[{0!r}].data))",
        "INT": "int(given[{0!r}].data[0])",
        "INTS": "tuple(map(int, given[{0!r}].data))",
        "STRING": "given[{0!r}].text()",
    }[field.kind].format(field.name)
    return f"        if {field.name!r} in given:\n            values[{field.name!r}] = {values}"
