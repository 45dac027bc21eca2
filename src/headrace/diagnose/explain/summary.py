"""The explanation of a frame as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headrace.diagnose.explain.records import (
    ClassStages,
    FrameExplanation,
    ModelExplanation,
    TensorStats,
)

_MOST_CLASSES = 12
_MOST_RESULTS = 12
_HEADS = ("class", "candidates", "threshold", "cluster", "topk", "objects")


def summary(data: FrameExplanation) -> str:
    """Lines for a terminal: each model's verdict, steps, drops and tensors."""
    lines = [f"frame {data.frame} of {data.source}, {data.width}x{data.height}"]
    for model in data.models:
        lines += ["", *_model(model)]
    return "\n".join(lines)


def _model(model: ModelExplanation) -> Iterator[str]:
    yield f"{model.name} ({model.kind}): {model.verdict}"
    if model.place is not None:
        yield f"  {model.place.sentence}"
        yield from _listed("there", [str(one) for one in model.place.history[1:]])
    if model.classes:
        yield f"  boxes left after each step, from a score of {model.floor:g}:"
        yield from _table(model)
    telling = [str(one) for one in model.dropped if one.telling]
    if faint := len(model.dropped) - len(telling):
        telling.append(f"{faint} more, doubles or far below the threshold, as usual")
    yield from _listed("dropped", telling)
    yield from _listed("not looked at", [str(one) for one in model.skipped])
    yield from _listed(
        "results",
        [
            f"{'frame' if one.object < 0 else f'object {one.object}'}: {one.text}"
            for one in model.results
        ],
    )
    findings = [  # the verdict has the first one, if that is the cause
        f"{one['where']}: {one['message']}" for one in model.findings
        if str(one["message"]).partition("\n")[0] not in model.verdict
    ]  # fmt: skip
    reasons = [one for one in model.reasons if one not in model.verdict] + findings
    yield from _listed("causes", reasons)
    tensors = [_tensor("input", one) for one in model.inputs]
    tensors += [_tensor("output", one) for one in model.outputs]
    yield from _listed("tensors", tensors)


def _listed(head: str, lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield f"  {head}:"
    for line in lines[:_MOST_RESULTS]:
        yield "    " + line.replace("\n", "\n    ")
    if len(lines) > _MOST_RESULTS:
        yield f"    and {len(lines) - _MOST_RESULTS} more"


def _table(model: ModelExplanation) -> Iterator[str]:
    ranked = ranked_classes(model)
    rows: list[tuple[str, ...]] = [
        (one.label, *map(str, stages_of([one]))) for one in ranked[:_MOST_CLASSES]
    ]
    if len(ranked) > _MOST_CLASSES:
        rest = ranked[_MOST_CLASSES:]
        rows.append((f"{len(rest)} more classes", *map(str, stages_of(rest))))
    if len(ranked) > 1:
        rows.append(("all", *map(str, stages_of(ranked))))
    widths = [max(len(row[i]) for row in (_HEADS, *rows)) for i in range(len(_HEADS))]
    for row in (_HEADS, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "    " + "  ".join(cells)


def ranked_classes(model: ModelExplanation) -> list[ClassStages]:
    """The classes of a model, those with most objects first, then those with most candidates."""
    return sorted(model.classes, key=lambda one: (-one.objects, -one.candidates))


def stages_of(classes: Iterable[ClassStages]) -> tuple[int, ...]:
    """The numbers of boxes after each step, of several classes together."""
    totals = [0] * (len(_HEADS) - 1)
    for one in classes:
        for index, name in enumerate(_HEADS[1:]):
            totals[index] += getattr(one, name)
    return tuple(totals)


def _tensor(kind: str, one: TensorStats) -> str:
    shape = "x".join(map(str, one.shape)) or "1"
    text = f"{kind} {one.name} {one.dtype} {shape}: "
    if one.minimum is None:
        return f"{text}no finite value"
    text += f"{one.minimum:.4g} to {one.maximum:.4g}, mean {one.mean:.4g}, deviation {one.std:.4g}"
    odd = [f"{one.nan} NaN"] if one.nan else []
    odd += [f"{one.infinite} infinite"] if one.infinite else []
    return f"{text}, {', '.join(odd)}" if odd else text
