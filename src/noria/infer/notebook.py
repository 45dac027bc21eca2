"""HTML of a model for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noria.infer.inferencer import Inferencer

_MAX_LABELS = 12


def inferencer_html(model: Inferencer) -> str:
    """Config, tensors, parser, labels and notices of a model."""
    from noria._core.html import facts, notice_list, paragraph

    config, session = model.config, model.session
    pairs = (
        ("config", config.path),
        ("kind", f"{config.network_type.name.lower()}, {config.process_mode.name.lower()}"),
        ("component", config.component_id),
        ("inputs", ", ".join(map(str, session.inputs))),
        ("outputs", ", ".join(map(str, session.outputs))),
        ("batch-size", config.batch_size),
        ("parser", "" if model.parser is None else model.parser.source),
        ("labels", _some(model.labels)),
        ("engine", model.engine_path or "not saved"),
    )
    return paragraph(repr(model)) + facts(pairs) + notice_list(model.notices)


def _some(labels: Sequence[str]) -> str:
    more = len(labels) - _MAX_LABELS
    text = ", ".join(labels[:_MAX_LABELS])
    return f"{text} and {more} more" if more > 0 else text
