"""ONNX's own tests of each operator, run through plans and sessions, and raw where those fail."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import onnx
import onnx.numpy_helper

from headrace.engine.builder import BuildOptions, build
from headrace.errors import HeadraceError
from headrace.network.network import Network
from headrace.network.versions import stamp_older

__all__ = ["RUNTIMES", "Outcome", "cases", "judge"]

RUNTIMES = ("onnxruntime", "openvino")
Kind = Literal["pass", "type", "refused", "values", "ours", "crashed"]
Runner = Callable[[onnx.ModelProto, Sequence[Any]], list[Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one case.

    Attributes:
        kind: `pass`; `type`: an input or output is no tensor that a plan can carry; `refused`: the
            runtime itself refuses the model; `values`: the runtime itself computes other numbers;
            `ours`: the runtime alone passes; `crashed`: it took its process with it.
        reason: in words.
    """

    name: str
    operator: str
    kind: Kind
    reason: str = ""


@cache
def cases() -> tuple[Any, ...]:
    """All node tests of the installed onnx package, each with its model and data."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflows that the cases are about
        return tuple(load_model_tests(kind="node"))


def judge(case: Any, runtime: str) -> Outcome:
    """Run one case through headrace, and raw if that fails."""
    model = case.model
    nodes = [n.op_type for n in model.graph.node]
    # a case may use helpers around the operator that it is about: its name begins with it
    spelled = case.name.removeprefix("test_").replace("_", "")
    named = sorted((n for n in nodes if spelled.startswith(n.lower())), key=len)
    operator = named[-1] if named else nodes[-1] if nodes else "(none)"
    try:
        found = _failure(case, _through_headrace(runtime))
    except HeadraceError as error:
        found = str(error)
    if found is None:
        return Outcome(case.name, operator, "pass")
    if kind := _no_tensor(model):
        return Outcome(case.name, operator, "type", kind)
    older = onnx.ModelProto()
    older.CopyFrom(model)
    stamp_older(older)
    raw = _raw_onnxruntime if runtime == "onnxruntime" else _raw_openvino
    try:
        alone = _failure(case, raw, older)
    except Exception as error:  # whatever the runtime's binding raises
        return Outcome(case.name, operator, "refused", _short(str(error)))
    if alone is None:
        return Outcome(case.name, operator, "ours", _short(found))
    return Outcome(case.name, operator, "values", _short(alone))


def _through_headrace(runtime: str) -> Runner:
    def run(model: onnx.ModelProto, arrays: Sequence[Any]) -> list[Any]:
        import onnx_ir as ir

        network = Network(ir.from_proto(model))
        plan = build(network, BuildOptions(batched=False, runtime=runtime, threads=1))
        with plan.open_session(threads=1) as session:
            names = [spec.name for spec in session.inputs]
            return list(session.run(dict(zip(names, arrays, strict=True))).values())

    return run


def _raw_onnxruntime(model: onnx.ModelProto, arrays: Sequence[Any]) -> list[Any]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [i.name for i in session.get_inputs()]
    outputs: list[Any] = session.run(None, dict(zip(names, arrays, strict=True)))
    return outputs


def _raw_openvino(model: onnx.ModelProto, arrays: Sequence[Any]) -> list[Any]:
    import openvino as ov
    from openvino.properties import hint

    core = ov.Core()
    compiled = core.compile_model(
        core.read_model(model.SerializeToString()), "CPU", {hint.inference_precision(): ov.Type.f32}
    )
    by_name = {v.name: a for v, a in zip(model.graph.input, arrays, strict=True)}
    fed = [next(by_name[n] for n in port.get_names() if n in by_name) for port in compiled.inputs]
    return list(compiled.create_infer_request().infer(fed, share_outputs=False).values())


def _failure(case: Any, run: Runner, model: onnx.ModelProto | None = None) -> str | None:
    """What is wrong with the outputs, or None. Compared as onnx's own runner does."""
    for inputs, wanted in case.data_sets:
        found = run(model or case.model, list(map(_array, inputs)))
        if len(found) < len(wanted):
            return f"{len(found)} outputs of {len(wanted)}"
        for have, want in zip(found, wanted, strict=False):
            if told := _difference(have, want, case.rtol, case.atol):
                return told
    return None


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def _difference(have: Any, want: Any, rtol: float, atol: float) -> str | None:
    if isinstance(want, list):
        if not isinstance(have, list) or len(have) != len(want):
            return "another sequence"
        parts = (_difference(h, w, rtol, atol) for h, w in zip(have, want, strict=True))
        return next(filter(None, parts), None)
    want = np.asarray(_array(want))
    have = np.asarray(have)
    if have.shape != want.shape:
        return f"shape {have.shape}, not {want.shape}"
    if have.dtype != want.dtype and {have.dtype.kind, want.dtype.kind} - {"O", "U", "S"}:
        return f"{have.dtype}, not {want.dtype}"
    if want.dtype.kind in "OUS":
        return None if have.tolist() == want.tolist() else "other strings"
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    close = np.isclose(have.astype(wide), want.astype(wide), rtol, atol, equal_nan=True)
    if close.all():
        return None
    return f"{np.count_nonzero(~close)} of {close.size} values differ"


_INTEGERS = tuple(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
_PLAIN = {
    getattr(onnx.TensorProto, name) for name in ("FLOAT", "FLOAT16", "DOUBLE", "BOOL", *_INTEGERS)
}


def _no_tensor(model: onnx.ModelProto) -> str:
    for value in (*model.graph.input, *model.graph.output):
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            return f"{(kind or 'untyped').removesuffix('_type')} at the edge of the model"
        number = value.type.tensor_type.elem_type
        if number not in _PLAIN:
            return f"{onnx.TensorProto.DataType.Name(number).lower()} at the edge of the model"
    return ""


def _short(text: str) -> str:
    """One line without addresses, paths and names of tensors, so that equal reasons are equal."""
    text = " ".join(text.split())
    if match := re.search(r"Could not find an implementation for (\w+)\((\d+)\)", text):
        return f"no kernel for {match[1]} of opset {match[2]} with these types"
    if match := re.search(r"operations: ([^\n]+?)(?: Summary|$)", text):
        return f"no operator {match[1][:60]}"
    if match := re.search(r"IR version: (\d+)", text):
        return f"IR {match[1]} is newer than the runtime"
    if match := re.search(r"(Opset \d+ is under development|opset \d+ .*?(?=\.))", text):
        return match[1][:100]
    text = re.sub(r"\[ONNXRuntimeError\] : \d+ : \w+ : ", "", text)
    text = re.sub(r"Exception from \S+ ", "", text)
    text = re.sub(r"\S*/\S+\.(?:cpp|cc|h|hpp)(?::\d+)?:?", "", text)
    text = re.sub(r"Check '.*?' failed at ?", "", text)
    return text.strip()[:110]
