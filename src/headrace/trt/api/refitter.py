"""Refitting: other weights for an engine that stays as it is. Source: tensorrt-api spec 4.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from headrace._core.errors import HeadraceError
from headrace._core.types import Array, DType
from headrace.engine.plan import MODEL_BLOB, Plan, blob_record
from headrace.network.onnx_file import network_from_onnx, network_from_onnx_bytes
from headrace.trt.api.model_message import ModelMessage
from headrace.trt.api.record import attach, record_of, record_of_foreign
from headrace.trt.release import versioned
from headrace.trt.types.enums import ErrorCode, TensorLocation, WeightsRole
from headrace.trt.types.reporting import CollectsErrors, ParserError, Severity, report
from headrace.trt.types.strict import Closable, kept
from headrace.trt.types.values import Weights, as_array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onnx import ModelProto
    from typing_extensions import Buffer

    from headrace.network.network import Network
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.api.engine import ICudaEngine
    from headrace.trt.types.reporting import IErrorRecorder, ILogger
    from headrace.trt.types.values import WeightsLike


@versioned(
    {
        ">=10": (
            "get_named_weights, get_weights_location, get_weights_prototype, "
            "refit_cuda_engine_async, unset_named_weights, weights_validation"
        ),
        "<11": "get_dynamic_range, set_dynamic_range, get_tensors_with_dynamic_range",
    }
)
class Refitter(Closable):
    """Collects weights, then replaces them all at once.

    The engine must have been built with `BuilderFlag.REFIT`.
    """

    def __init__(self, engine: ICudaEngine, logger: ILogger | None) -> None:
        self._engine = engine
        self._logger = logger
        self._recorder: IErrorRecorder | None = None
        self._given: dict[str, Array] = {}
        self._max_threads = 1
        self._validates = True
        self._locations: dict[str, NumberedEnum] = {}
        record = engine._record
        self._roles = {
            (layer.name, role): name
            for layer in record.layers
            for role, name in layer.weights.items()
            if role in WeightsRole.__members__  # the exponents of a scale layer have none
        }
        self._names = dict(record.names)
        self._sizes = _sizes(engine._plan)
        if not engine.refittable:
            self._report("the engine was not built with BuilderFlag.REFIT")

    logger = kept("_logger", "Where errors are reported.", read_only=True)
    error_recorder = kept("_recorder", "An `IErrorRecorder`, or None.")
    max_threads = kept("_max_threads", "Recorded.", convert=int)
    weights_validation = kept(
        "_validates", "True refuses weights that are infinite or no numbers.", convert=bool
    )

    def set_weights(self, layer_name: str, role: NumberedEnum, weights: WeightsLike) -> bool:
        """New weights of a layer; False if it has none in this role, or of another size."""
        name = self._roles.get((layer_name, WeightsRole(role).name))
        if name is None:
            self._report(f"layer {layer_name!r} has no weights {WeightsRole(role).name}")
            return False
        return self._take(name, weights)

    def set_named_weights(
        self, name: str, weights: WeightsLike, location: NumberedEnum | None = None
    ) -> bool:
        """New weights by name; False if nothing is called so, or of another size."""
        initializer = self._names.get(name)
        if initializer is None:
            self._report(f"no weights are called {name!r}")
            return False
        if not self._take(initializer, weights):
            return False
        self._locations[name] = TensorLocation["HOST"] if location is None else location
        return True

    def get_weights_location(self, name: str) -> NumberedEnum:
        """The location given to `set_named_weights`; HOST for others."""
        return self._locations.get(name, TensorLocation["HOST"])

    def unset_named_weights(self, name: str) -> bool:
        """Take `set_named_weights` back."""
        return self._given.pop(self._names.get(name, ""), None) is not None

    def get_named_weights(self, name: str) -> Weights | None:
        """The weights given to `set_named_weights`."""
        array = self._given.get(self._names.get(name, ""))
        return None if array is None else Weights(array)

    def get_weights_prototype(self, name: str) -> Weights | None:
        """Type and size of named weights."""
        prototype = self._sizes.get(self._names.get(name, ""))
        return None if prototype is None else Weights(np.zeros(prototype[0], prototype[1]))

    def get_all(self) -> tuple[list[str], list[NumberedEnum]]:
        """Names of layers, and roles, of all weights."""
        pairs = list(self._roles)
        return [n for n, _ in pairs], [WeightsRole[role] for _, role in pairs]

    def get_missing(self) -> tuple[list[str], list[NumberedEnum]]:
        """None: weights that are not given stay as they are."""
        return [], []

    def get_all_weights(self) -> list[str]:
        """Names of all named weights."""
        return list(self._names)

    def get_missing_weights(self) -> list[str]:
        """None: weights that are not given stay as they are."""
        return []

    def get_dynamic_range(self, tensor_name: str) -> tuple[float, float]:
        """Ranges are not kept."""
        return (0.0, 0.0)

    def set_dynamic_range(self, tensor_name: str, range: Sequence[float]) -> bool:
        """Ranges cannot be changed."""
        return False

    def get_tensors_with_dynamic_range(self) -> list[str]:
        """Ranges are not kept."""
        return []

    def refit_cuda_engine(self) -> bool:
        """Use the new weights; contexts use them at their next run."""
        if not self._engine.refittable:
            self._report("the engine was not built with BuilderFlag.REFIT")
            return False
        try:
            self._engine._refitted(_with_weights(self._engine._plan, self._given))
        except HeadraceError as error:
            self._report(str(error))
            return False
        self._given.clear()
        return True

    def refit_cuda_engine_async(self, stream_handle: int) -> bool:
        """As `refit_cuda_engine`."""
        return self.refit_cuda_engine()

    def _take(self, name: str, weights: WeightsLike) -> bool:
        array = as_array(weights)
        size, dtype = self._sizes[name]
        if array is None or array.size != size:
            count = 0 if array is None else array.size
            self._report(f"{count} weights for {name!r}, which has {size}")
            return False
        taken = np.array(array, dtype)
        if self._validates and taken.dtype.kind == "f" and not np.isfinite(taken).all():
            self._report(
                f"weights for {name!r} are infinite or no numbers; weights_validation = False "
                "takes them"
            )
            return False
        self._given[name] = taken
        return True

    def _report(self, text: str) -> None:
        report(self._logger, Severity.ERROR, text, recorder=self._recorder)


@versioned({">=10.13": "load_model_proto, load_initializer, refit_model_proto"})
class OnnxParserRefitter(CollectsErrors):
    """Gives a refitter the weights of a model of the same graph."""

    def __init__(self, refitter: Refitter, logger: ILogger | None) -> None:
        self._refitter = refitter
        self._logger = logger
        self._errors: list[ParserError] = []
        self._message = ModelMessage()

    def refit_from_file(self, model: str) -> bool:
        """Take the weights of a file."""
        return self._refit(lambda: network_from_onnx(model))

    def refit_from_bytes(self, model: Buffer, path: str | None = None) -> bool:
        """Take the weights of a message."""
        from pathlib import Path

        where = Path(path or "model.onnx")
        return self._refit(lambda: network_from_onnx_bytes(bytes(model), where))

    def load_model_proto(self, model: Buffer, path: str | None = None) -> bool:
        """Keep a message for `refit_model_proto`."""
        return self._message.load(model, path, self._fail)

    def load_initializer(self, name: str, data: int, size: int) -> bool:
        """Give an initialiser of the kept message the `size` bytes at the address `data`."""
        return self._message.set_initializer(name, data, size, self._fail)

    def refit_model_proto(self) -> bool:
        """Take the weights of the kept message."""
        return self._refit(self._message.network)

    def _refit(self, read: Callable[[], Network]) -> bool:
        """Take all weights of a model, or none if anything does not fit."""
        try:
            arrays = _weights_of(read().to_proto())
        except HeadraceError as error:
            return self._fail([str(error)])
        refitter = self._refitter
        if not refitter._engine.refittable:
            return self._fail(["the engine was not built with BuilderFlag.REFIT"])
        problems = []
        for name in refitter.get_all_weights():
            size, _ = refitter._sizes[refitter._names[name]]
            if name not in arrays:
                problems.append(f"the model has no weights {name!r}, which the engine has")
            elif arrays[name].size != size:
                problems.append(f"{arrays[name].size} weights for {name!r}, which has {size}")
        if problems:
            return self._fail(problems)
        for name in refitter.get_all_weights():
            refitter.set_named_weights(name, np.ascontiguousarray(arrays[name]))
        return True

    def _fail(self, problems: list[str]) -> bool:
        for text in problems:
            self._errors.append(ParserError(ErrorCode["REFIT_FAILED"], text))
            report(self._logger, Severity.ERROR, text)
        return False


def _weights_of(proto: ModelProto) -> dict[str, Array]:
    """Initialisers, and constants by the names of their outputs."""
    from onnx import numpy_helper

    weights = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    for node in proto.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                weights[node.output[0]] = numpy_helper.to_array(attribute.t)
    return weights


def _model(plan: Plan) -> ModelProto:
    import onnx

    proto = onnx.ModelProto()
    proto.ParseFromString(plan.blobs[MODEL_BLOB])
    return proto


def _sizes(plan: Plan) -> dict[str, tuple[int, DType]]:
    from onnx import helper

    return {
        t.name: (int(np.prod(t.dims)), helper.tensor_dtype_to_np_dtype(t.data_type))
        for t in _model(plan).graph.initializer
    }


def make_refittable(plan: Plan) -> Plan:
    """Let the weights of a plan be replaced, each by the name that its model gives it."""
    record = record_of(plan) or record_of_foreign(plan)
    names = {name: name for name in _sizes(plan)}
    flags = tuple(sorted({*record.flags, "REFIT"}))
    return attach(plan, structs.replace(record, flags=flags, names={**names, **record.names}))


def weight_bytes(plan: Plan) -> int:
    """Bytes of all initialisers of a plan."""
    return sum(int(size * np.dtype(dtype).itemsize) for size, dtype in _sizes(plan).values())


def _with_weights(plan: Plan, weights: dict[str, Array]) -> Plan:
    """The plan with other initialisers."""
    from onnx import numpy_helper

    proto = _model(plan)
    for tensor in proto.graph.initializer:
        array = weights.get(tensor.name)
        if array is not None:
            tensor.CopyFrom(numpy_helper.from_array(array.reshape(tuple(tensor.dims)), tensor.name))
    data = proto.SerializeToString(deterministic=True)
    blobs = plan.blobs | {MODEL_BLOB: data}
    records = tuple(
        blob_record(MODEL_BLOB, data) if b.name == MODEL_BLOB else b for b in plan.header.blobs
    )
    return Plan(plan.header.changed(blobs=records), blobs)
