"""Checks of a creator and of objects that are not run: names, copies, descriptions, forms."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any

from headrace._core.errors import PluginError
from headrace._core.findings import Level
from headrace.diagnose.plugin_check.breach import Breach
from headrace.diagnose.plugin_check.breach import broken as _broken
from headrace.diagnose.plugin_check.lives import Subject, added, differs, lived, run
from headrace.plugins.base import IPluginV3
from headrace.plugins.calls import Instance
from headrace.plugins.driver_dynamic import described
from headrace.plugins.driver_v3 import BUILD, CORE
from headrace.plugins.drivers import LIVES
from headrace.plugins.field_data import PluginFieldCollection
from headrace.plugins.layer import LayerPlugin, ShapeInput
from headrace.plugins.negotiate import closest, form_desc
from headrace.plugins.types import (
    DataType,
    DynamicPluginTensorDesc,
    PluginTensorDesc,
    TensorFormat,
)

MOST_NAME = 1024
_TIMES = 6
"""How often a question is asked again."""


def check_creator(creator: Any) -> list[Breach]:
    """Check the fields that a creator declares."""
    count = getattr(getattr(creator, "native", None), "field_count", lambda: 0)()
    names = [field.name for field in creator.field_names]
    if count is None:
        text = "getFieldNames returned null: the ONNX parser cannot make this plugin"
        return [Breach("fields", text, "warning")]
    if "" in names:
        raise _broken("fields", f"field {names.index('')} of getFieldNames has no name")
    if long := [n for n in names if len(n.encode("utf-8", "replace")) >= MOST_NAME]:
        raise _broken("fields", f"a field of getFieldNames has a name of {len(long[0])} bytes")
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise _broken("fields", f"getFieldNames has {twice[0]!r} twice")
    return []


def check_creation(subject: Subject) -> list[Breach]:
    """Objects made of other collections, with the same values or fewer."""
    breaches = []
    reference = _outputs(subject, subject.fields)
    if len(subject.fields) > 1:
        turned = PluginFieldCollection(list(subject.fields)[::-1])
        try:
            other = differs(reference, _outputs(subject, turned))
        except PluginError as error:
            other = f"it fails: {error:brief}"
        if other:
            text = f"with its fields in another order {other}"
            breaches.append(Breach("create-by-name", text, "warning"))
    return breaches


def check_defaults(subject: Subject) -> list[Breach]:
    """Objects made of no fields at all."""
    try:
        subject.made(PluginFieldCollection([]))
    except PluginError as error:
        return [Breach("create-defaults", f"without any field {error:brief}", "warning")]
    return []


def _outputs(subject: Subject, fields: PluginFieldCollection) -> Any:
    life = lived(subject, subject.made(fields))
    return run(life.context(), subject, subject.inputs(subject.sizes[-1]))


def check_object(subject: Subject) -> list[Breach]:
    """Names, namespaces and copies of one object."""
    breaches: list[Breach] = []
    creator, user = subject.creator, subject.made()
    third = isinstance(user.plugin, IPluginV3)
    face: Any = user.face("parse", CORE) if third else user.plugin
    kind, word = ("plugin_name", "getPluginName") if third else ("plugin_type", "getPluginType")
    name = user.get("parse", kind, face=face)
    if name != creator.name:
        raise _broken("names", f"{word} returned {name!r}; the creator's is {creator.name!r}")
    version = user.get("parse", "plugin_version", face=face)
    if version != creator.plugin_version:
        text = f"getPluginVersion returned {version!r}; the creator's is {creator.plugin_version!r}"
        raise _broken("names", text)
    if not third:
        plugin: Any = user.plugin
        plugin.plugin_namespace = "acme"
        kept = user.get("parse", "plugin_namespace")
        if kept != "acme":
            text = f'after setPluginNamespace("acme") getPluginNamespace returned {kept!r}'
            breaches.append(Breach("namespace", text, "warning"))
    twin = user.clone("parse")
    copied: Any = twin.face("parse", CORE) if third else twin.plugin
    spaces = [i.get("parse", "plugin_namespace", face=f) for i, f in ((user, face), (twin, copied))]
    if spaces[0] != spaces[1]:
        text = f"the original has the namespace {spaces[0]!r}, its clone {spaces[1]!r}"
        level: Level = "error" if creator.plugin_namespace else "warning"  # nobody set one yet
        breaches.append(Breach("clone-namespace", text, level))
    return breaches


def check_descriptions(subject: Subject) -> list[Breach]:
    """Counts, types and shapes of outputs: asked again, and of a clone."""
    layer = added(subject, subject.made())
    kinds = [closest(s.dtype) for s in subject.specs]
    dims = [s.dims for s in subject.specs]
    values = [ShapeInput(v) for v in subject.shape_values]
    other = _twin(layer)
    for one in (*[layer] * _TIMES, other):
        count = _read(one.instance, "num_outputs", one.generation == "V3")
        if count != layer.num_outputs:
            text = f"getNbOutputs returned {layer.num_outputs}, then {count}"
            raise _broken("outputs-count", text)
    questions: list[tuple[str, Callable[[LayerPlugin], object]]] = [
        ("output-types", lambda one: one.output_types(kinds)),
        ("output-shapes", lambda one: repr(one.output_shapes(dims, values))),
    ]
    for clause, ask in questions:
        first = ask(layer)
        if unlike := [a for a in (ask(layer) for _ in range(_TIMES)) if a != first]:
            raise _broken(clause, f"the same inputs give {first}, then {unlike[0]}")
        if (copied := ask(other)) != first:
            raise _broken("clone-same", f"the original says {first}, its clone {copied}")
    return []


def _read(instance: Instance, attribute: str, third: bool) -> object:
    return instance.read("parse", BUILD, attribute) if third else instance.get("parse", attribute)


def _twin(layer: LayerPlugin) -> LayerPlugin:
    """The same layer with a clone of its plugin."""
    twin = copy.copy(layer)
    twin.instance = layer.instance.clone("parse")
    return twin


def check_formats(subject: Subject) -> list[Breach]:
    """Check that answers of supportsFormatCombination are stable."""
    life = lived(subject)
    spec, probe = life.engine.spec, life.layer.instance.clone("build")
    forms = [*spec.input_forms, *spec.output_forms]
    if spec.generation in ("V2", "V2Ext"):
        return _check_common(probe, forms[0])
    third = spec.generation == "V3"
    free = described(subject.specs, subject.ranges(), spec.shapes, forms)
    tensors = [d for part in free for d in part]
    if not third and spec.generation == "V2IOExt":
        tensors = [
            DynamicPluginTensorDesc(PluginTensorDesc(d.opt[1:]), d.min[1:], d.max[1:], d.opt[1:])
            for d in tensors
        ]
    twin = probe.clone("build")

    def ask(instance: Instance, pos: int, rest: tuple[Any, Any]) -> bool:
        descs: list[Any] = []
        for number, tensor in enumerate(tensors):
            desc = (
                form_desc(tensor.desc.dims, forms[number]) if number <= pos
                else PluginTensorDesc(tensor.desc.dims, *rest)
            )  # fmt: skip
            descs.append(
                DynamicPluginTensorDesc(desc, tensor.min, tensor.max, tensor.opt) if third else desc
            )
        method, count = "supports_format_combination", len(spec.input_forms)
        if third:
            return bool(instance.ask("build", BUILD, method, pos, descs, count))
        return bool(instance.call("build", method, pos, descs, count))

    for pos in range(len(tensors)):
        first = ask(probe, pos, (None, None))
        if any(first != ask(probe, pos, (None, None)) for _ in range(_TIMES)):
            raise _broken("formats-same", f"at pos {pos} the same question has another answer")
        if first != ask(twin, pos, (None, None)):
            raise _broken("formats-same", f"at pos {pos} a clone has another answer")
        for rest in ((DataType.INT8, TensorFormat.CHW32), (DataType.FLOAT, TensorFormat.LINEAR)):
            if first != ask(probe, pos, rest):
                text = f"the answer at pos {pos} changes with the entries behind it"
                raise _broken("formats-pure", text)
    return []


def _check_common(probe: Instance, form: Any) -> list[Breach]:
    twin = probe.clone("build")
    asked = [one.call("build", "supports_format", form.type, form.format) for one in (probe, twin)]
    if not all(asked):
        raise _broken("formats-same", f"{form} was accepted, and is refused when asked again")
    if form.type != DataType.FLOAT:
        text = f"FLOAT, kLINEAR is refused, {form} accepted: a plugin of this class must take it"
        return [Breach("formats", text)]
    return []


def check_saved(subject: Subject) -> list[Breach]:
    """Check that saved data is written whole, and the same each time."""
    life = lived(subject)
    engine = life.engine
    engine.save()  # sizes, kinds and lengths, as every save has them checked
    plugin: Any = engine.instances[0].plugin
    if engine.life is LIVES["V3"]:
        return []
    native = getattr(plugin, "native", None)
    one, two = (
        (native.serialize(fill) for fill in (0x55, 0xAA))
        if native is not None
        else (bytes(plugin.serialize()) for _ in range(2))
    )
    pairs = list(zip(one, two, strict=False))
    if native is not None and (left := sum(p == (0x55, 0xAA) for p in pairs)):
        text = (
            f"serialize wrote {len(one) - left} bytes, and getSerializationSize returned {len(one)}"
        )
        raise _broken("serialize-size", text)
    if len(one) != len(two):
        raise _broken("serialize-same", f"serialize wrote {len(one)} bytes, then {len(two)}")
    if differing := [i for i, (a, b) in enumerate(pairs) if a != b]:
        text = f"serialize writes other bytes when it is called again: {len(differing)} differ, "
        return [Breach("serialize-same", f"{text}the first is number {differing[0]}", "warning")]
    return []
