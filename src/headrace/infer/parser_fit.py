"""Whether the parser of a config, its classes and its labels fit the outputs of its model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import ConfigError, ParserError
from headrace._core.findings import Finding
from headrace.config.enums import PARSER_FIELDS, ClusterMode, NetworkType
from headrace.infer import parsers  # all heads are imported only for a suggestion
from headrace.infer.class_checks import class_findings, class_notices
from headrace.infer.classify import narrow_outputs
from headrace.infer.parser_choice import KINDS, Choice
from headrace.infer.parsers import BuiltinParser, better_than, parse_coverage_bbox, renaming
from headrace.infer.parsers.labels import Labels
from headrace.infer.trial import Change, advised, parser_change
from headrace.meta import NetworkInfo
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace.config import ModelConfig


def check_outputs(
    cfg: ModelConfig,
    choice: Choice | None,
    outputs: Sequence[TensorSpec],
    network: NetworkInfo | None,
    labels: Labels,
    notices: list[Finding],
) -> None:
    """Warn if the outputs do not fit the parser, or the classes and labels that the config has.

    Args:
        cfg: the config.
        choice: its parser; None for network-type 100, which has none to fit.
        outputs: of the model, batch first; none if they are not known.
        network: size of the network input, None where it is not known.
        labels: of the config's label file, none if it names none.
        notices: gets the warnings.

    Raises:
        ParserError: see `require_grid_outputs`.
        ConfigError: another number of classes than a head needs, which would refuse every output;
            an output of texts.
    """
    if texts := [spec.name for spec in outputs if spec.dtype.kind == "O"]:
        raise ConfigError(
            f"the model's output {', '.join(texts)} holds texts",
            where=str(cfg.path),
            expected="numbers alone",
            fix="make the numbers that they are chosen by outputs in their place",
        )
    if choice is None:
        return
    parser = choice.parser
    if parser is parse_coverage_bbox and outputs:
        require_grid_outputs(cfg, outputs, network)
    misfits = misfit_notices(cfg, parser, outputs, network)
    notices += [*misfits, *_wide_outputs(cfg, choice, outputs)]
    if cfg.network_type is NetworkType.CLASSIFIER and parser is None:
        notices += narrow_outputs(outputs)
        notices += _no_classifier(cfg, outputs, network)
    if misfits:
        notices += class_notices(cfg, (), labels)
        return
    classes = class_findings(cfg, choice, outputs, network, labels)
    notices += classes
    if isinstance(parser, BuiltinParser) and parser.head.strict_classes:
        for notice in [n for n in classes if n.code == "class-count"]:
            notices.remove(notice)
            raise ConfigError(notice)


def _no_classifier(
    cfg: ModelConfig, outputs: Sequence[TensorSpec], network: NetworkInfo | None
) -> Iterator[Finding]:
    """Outputs of a classifier that are tables or maps, with the parsers of boxes that fit them."""
    long = [spec for spec in outputs if any(isinstance(d, int) and d > 1 for d in spec.shape[2:])]
    if not long or any(spec.shape[1] == 1 for spec in long):
        return
    text = f"network-type=1 (classifier), but output {long[0]} is no list of probabilities, as "
    text += "heads of detectors and maps of classes are none"
    finding = Finding("type-and-outputs", "warning", text, cfg.where("network_type"))
    number = max(1, cfg.num_detected_classes)
    fits = parsers.suggest(outputs, network, number)[:3]
    changes = [parser_change(name, NetworkType.DETECTOR, cfg) for name in fits]
    yield advised(finding, changes) if changes else finding


def _wide_outputs(
    cfg: ModelConfig, choice: Choice, outputs: Sequence[TensorSpec]
) -> Iterator[Finding]:
    """How a C++ library gets INT64 outputs, where the config leaves it open."""
    wide = [o.name for o in outputs if o.dtype == np.int64]
    if not wide or choice.library is None or choice.library.kind != "cpp":
        return
    where = cfg.where("custom_lib_path")
    data = {"outputs": ", ".join(wide)}
    if cfg.custom_lib_int64 != "auto":
        return
    from headrace.custom.narrowed import NarrowedOutputs

    if isinstance(choice.parser, NarrowedOutputs):
        text = "the library gets {outputs} as INT32, not as INT64: {reason}"
        fix = "custom-lib-int64=int64 if it reads 64 bits"
        narrowed = data | {"reason": choice.parser.reason}
        yield Finding("outputs-narrowed", "info", text, where, narrowed, remedies=(fix,))
        return
    text = "the library gets {outputs} as INT64: parsers written before TensorRT 10 (DeepStream "
    text += "7.0 and older) read INT32 there, and take every second value for 0"
    fixes = "int32 is for libraries of that time, int64 for those that read 64 bits"
    finding = Finding("outputs-int64", "warning", text, where, data, remedies=(fixes,))
    yield advised(finding, [{"custom-lib-int64": kind} for kind in ("int32", "int64")])


def require_grid_outputs(
    cfg: ModelConfig, outputs: Sequence[TensorSpec], network: NetworkInfo | None = None
) -> None:
    """The grid parser needs two outputs named *cov* and *bbox*; say so before the first frame.

    `network` is the size of the network input, None where it is not known.

    Raises:
        ParserError: they are not there; names the built-in parsers that fit the outputs.
    """
    missing = [p for p in ("cov", "bbox") if not any(p in o.name for o in outputs)]
    if not missing:
        return
    name = cfg.parse_bbox_func_name
    from headrace.custom.library import parsers_in

    unset = "no parse-bbox-func-name is set"
    if name:
        unset = f"parse-bbox-func-name={name} has no effect without custom-lib-path"
        unset += KINDS[NetworkType.DETECTOR].did_you_mean(name)
    hints: list[str] = []
    changes: list[Change] = []
    if not name and cfg.custom_lib_path and (own := parsers_in(cfg.custom_lib_path)):
        functions = f"{', '.join(own[:5])}{' …' if own[5:] else ''}"
        hints.append(f"{cfg.custom_lib_path.name} has {functions}")
        changes += [{"parse-bbox-func-name": function} for function in own[:5]]
    if fits := parsers.suggest(outputs, network, cfg.num_detected_classes):
        hints.append(f"the outputs look like {', '.join(fits)}")
        changes += [parser_change(head, NetworkType.DETECTOR, cfg) for head in fits]
    elif other := _other_type(outputs, network):
        kind, words = other
        hints.append(words)
        changes.append({"network-type": str(int(kind))})
    hints.append("or name your own parser: parse-bbox-func-name and custom-lib-path=my_parser.py")
    refusal = Finding(
        "parser-missing",
        "error",
        f"{unset}, and the built-in grid parser does not fit: no output "
        f"has {' or '.join(repr(m) for m in missing)} in its name",
        str(cfg.origin("parse_bbox_func_name")) if name else str(cfg.path),
        expectation="outputs of a DetectNet-style model, or a parser for these: "
        + ", ".join(str(o) for o in outputs),
        remedies=tuple(hints),
    )
    raise ParserError(advised(refusal, changes) if changes else refusal)


def _other_type(
    outputs: Sequence[TensorSpec], network: NetworkInfo | None
) -> tuple[NetworkType, str] | None:
    """Another type of network, with the reason, if outputs are those of a classifier or a map."""
    items = [spec.shape[1:] for spec in outputs]
    if items and all(item and all(d == 1 for d in item[1:]) for item in items):
        return NetworkType.CLASSIFIER, "one value for each class is what a classifier gives"
    if len(items) == 1 and len(items[0]) == 3 and network is not None:
        axes = [d if isinstance(d, int) else 0 for d in items[0]]
        for height, width in (axes[1:], axes[:2]):  # channels first, or last
            if height * 4 >= network.height and width * 4 >= network.width:
                words = "an output as large as an image is a map of classes"
                return NetworkType.SEGMENTATION, words
    return None


def misfit_notices(
    cfg: ModelConfig, parser: object, outputs: Sequence[TensorSpec], network: NetworkInfo | None
) -> list[Finding]:
    """A warning if `parser` is a built-in one that cannot read the outputs, or not as others can.

    Args:
        cfg: the config.
        parser: of its choice.
        outputs: of the model; none if they are not known.
        network: size of the network input, None where it is not known.
    """
    if not (outputs and isinstance(parser, BuiltinParser) and cfg.num_detected_classes):
        return []
    head = parser.head
    better = better_than(head, outputs, network, cfg.num_detected_classes)
    if not better and parser.reads(outputs, network):
        return []
    text = f"{head.key}={head.name} does not fit the model's outputs "
    text += f"({', '.join(map(str, outputs))}; num-detected-classes={cfg.num_detected_classes})"
    if names := renaming(head, outputs, network):
        text += f": it finds them by name, and {names}"
    changes = [parser_change(name, cfg.network_type, cfg) for name in better[:3]]
    if not better and not names:
        changes = _with_masks(cfg, outputs, network)
        text += ": no built-in parser of this network-type does"
        text += "" if changes else "; write your own: custom-lib-path=my_parser.py"
    where = cfg.origin(head.key.replace("-", "_"))
    finding = Finding("parser-misfit", "warning", text, str(where))
    if not changes:
        return [finding]
    return [advised(finding.changed(suffix="; others would"), changes)]


def _with_masks(
    cfg: ModelConfig, outputs: Sequence[TensorSpec], network: NetworkInfo | None
) -> list[Change]:
    """The changes that have parsers of boxes with masks read the outputs of a detector."""
    if cfg.network_type is not NetworkType.DETECTOR:
        return []
    kind = NetworkType.INSTANCE_SEGMENTATION
    key = PARSER_FIELDS[kind].replace("_", "-")
    fits = parsers.suggest(outputs, network, cfg.num_detected_classes, key=key)
    clustering = {"cluster-mode": "4"} if cfg.cluster_mode is not ClusterMode.NONE else {}
    return [{**parser_change(name, kind, cfg), **clustering} for name in fits[:2]]
