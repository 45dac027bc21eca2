"""Evidence on the keys that a model's file and its outputs give, before anything is tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError
from headrace.config import ModelConfig
from headrace.config.document import AddedLine
from headrace.config.dump import value_text
from headrace.config.enums import PARSER_FIELDS, ColorFormat, NetworkType
from headrace.config.field_checks import KEY_OF_FIELD
from headrace.infer.recognise.images import UndecidedError
from headrace.infer.recognise.recognise import Recognition, recognise_for_init
from headrace.infer.trial import Change

if TYPE_CHECKING:
    from headrace.infer.parsers.head import LayerLike
    from headrace.meta import NetworkInfo

PARSER_KEYS = {kind: field.replace("_", "-") for kind, field in PARSER_FIELDS.items()}


@dataclass(frozen=True, slots=True)
class Statement:
    """A change that the file speaks for.

    Attributes:
        dimension: of the search.
        change: the keys.
        why: the evidence, in words.
        firm: it was read; else it is usual, and assumed.
    """

    dimension: str
    change: Change
    why: str
    firm: bool = True


@dataclass(slots=True)
class ModelEvidence:
    """Evidence on a model, read before the search.

    Attributes:
        statements: of the model's file, on each dimension.
        layers: outputs of one image; empty if no engine could be opened.
        network: the size of its image input, None if it is not known.
        classes: how many classes the metadata or the outputs hold, 0 if neither tells.
        kind: the network type by its head; None if it was not recognised.
    """

    statements: list[Statement] = field(default_factory=list)
    layers: Sequence[LayerLike] = ()
    network: NetworkInfo | None = None
    classes: int = 0
    kind: NetworkType | None = None


def file_evidence(cfg: ModelConfig) -> ModelEvidence:
    """Recognise the model that a config names; nothing is saved.

    A model that is no ONNX file, or that nothing is known of, gives no evidence.
    """
    evidence = ModelEvidence()
    recognition = None if cfg.onnx_file is None else _recognised(cfg)
    if recognition is None:
        return evidence
    own, assumed = recognition.config, recognition.images.assumed
    why = recognition.reasons
    if "scaling" in recognition.images.reasons:
        texts = _texts(own, "net_scale_factor", "offsets")
        texts["offsets"] = texts["offsets"] if own.offsets else None
        firm = "scaling" not in assumed
        evidence.statements.append(Statement("range", texts, why["net_scale_factor"], firm))
    axes: dict[str, str | None] = {"infer-dims": None, "network-input-order": None}
    if recognition.images.interleaved or recognition.images.chosen:
        axes |= _texts(own, "infer_dims")
    if recognition.images.interleaved:
        axes |= _texts(own, "network_input_order")
    evidence.statements.append(Statement("input", axes, why["infer_dims"]))
    texts = _texts(own, "model_color_format")
    gray = own.model_color_format is ColorFormat.GRAY
    firm = "order" not in assumed or gray
    evidence.statements.append(Statement("colours", texts, why["model_color_format"], firm))
    fit = _fit_change(own.maintain_aspect_ratio, own.symmetric_padding)
    firm = "fit" not in assumed
    evidence.statements.append(Statement("fit", fit, why["maintain_aspect_ratio"], firm))
    if recognition.reading is not None:
        evidence.kind = own.network_type
        evidence.classes = own.num_detected_classes
        _head(evidence, recognition)
    return evidence


def _head(evidence: ModelEvidence, recognition: Recognition) -> None:
    """Add parser, classes and clustering, as the head has them."""
    own, why = recognition.config, recognition.reasons
    key = PARSER_KEYS.get(own.network_type)
    change: dict[str, str | None] = {"network-type": str(int(own.network_type))}
    if key is not None:
        name = getattr(own, key.replace("-", "_"))
        change |= {other: None for other in PARSER_KEYS.values() if other != key}
        change[key] = name
        change["custom-lib-path"] = None
    if own.network_type.has_class_attrs and own.num_detected_classes:
        change["num-detected-classes"] = str(own.num_detected_classes)
    evidence.statements.append(Statement("parser", change, why.get("network_type", "the outputs")))
    if own.network_type is NetworkType.DETECTOR:
        mode: dict[str, str | None] = {"cluster-mode": str(int(own.cluster_mode))}
        evidence.statements.append(Statement("clustering", mode, why["cluster_mode"], firm=False))


def _fit_change(maintain: bool, symmetric: bool) -> dict[str, str | None]:
    """Keys that stretch an image, or fit it in."""
    return {
        "maintain-aspect-ratio": "1" if maintain else None,
        "symmetric-padding": "1" if maintain and symmetric else None,
    }


def _recognised(cfg: ModelConfig) -> Recognition | None:
    path = cfg.onnx_file
    assert path is not None
    asked: dict[str, Any] = {}
    for _ in range(2):
        try:
            return recognise_for_init(path, asked, save=False)
        except UndecidedError as error:
            # the questions are what the search answers; the rest of the file still speaks
            keys = {question.key for question in error.questions}
            if keys != {"net-scale-factor"} or asked:
                return None
            asked = {"net_scale_factor": cfg.net_scale_factor, "offsets": cfg.offsets}
        except HeadraceError:
            return None
    return None


def _texts(cfg: ModelConfig, *fields: str) -> dict[str, str | None]:
    """Keys of fields with their values as a file has them."""
    pairs = ((KEY_OF_FIELD[name], getattr(cfg, name)) for name in fields)
    return {key.name: value_text(key, value, "ini") for key, value in pairs}


def bare_text(path: Path) -> tuple[bytes, bool]:
    """A config for a model that has none, and whether recognition is sure of it.

    Where its questions are open, the first answers stand there, for a search to try the others.

    Raises:
        ModelError: the file cannot be read.
    """
    fields: dict[str, Any] = {}
    for _ in range(3):
        try:
            text = recognise_for_init(path, fields, save=False).config.dump("ini")
        except UndecidedError as error:
            for question in error.questions:
                for line in question.candidates[0][0]:
                    key, _, value = line.partition("=")
                    fields |= _field(key, value)
            continue
        return text.encode(), not fields
    return f"[property]\nonnx-file={path.absolute()}\n".encode(), False


def _field(key: str, value: str) -> dict[str, Any]:
    """A line of a config as a field with its value."""
    cfg = ModelConfig().with_lines([AddedLine("property", key, value, "repair")])
    name = key.replace("-", "_")
    return {name: getattr(cfg, name)}
