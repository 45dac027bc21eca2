"""`headrace compare`: two models on the same frames, and the stage that makes them differ."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from headrace.cli.options import run_options
from headrace.cli.output import FiniteRange, echo, print_json, print_notices, print_table
from headrace.cli.progress import RunProgress

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.diagnose.compare import Comparison
    from headrace.diagnose.compare.stage_drift import StageDrift
    from headrace.engine.plan_header import Precision
    from headrace.infer.run_options import RunOptions

EPILOG = """\b
Examples:
  headrace compare old.txt new.txt video.mp4
  headrace compare config.txt config.txt video.mp4 --precision 2:int8 -o report.html
  headrace compare config.txt config.txt photos/ --set 2:scaling-filter=0
  headrace compare config.txt other.engine video.mp4 --frames 100
  headrace compare config.txt config.txt video.mp4 --backend 2:openvino --json

\b
Exit codes: 0 the same within the tolerances, 1 different; see `headrace --help` for the others.
"""
_PRECISIONS = ("fp32", "fp16", "bf16", "int8", "best")
_SHOWN_LAYERS = 8
_NUMBERED = re.compile(r"([12]):(.+)")


class _OfSide(click.ParamType[tuple[int, str]]):
    """`1:VALUE` for A or `2:VALUE` for B."""

    name = "N:VALUE"

    def __init__(self, choices: tuple[str, ...] = ()) -> None:
        self.choices = choices

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, str]:
        """The side, 0 or 1, and the value."""
        match = _NUMBERED.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} does not say which: 1:{value} is A, 2:{value} is B.", param, ctx)
        if self.choices and match[2] not in self.choices:
            self.fail(f"{match[2]!r} is not one of {', '.join(self.choices)}.", param, ctx)
        return int(match[1]) - 1, match[2]


@click.command(epilog=EPILOG)
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.argument("source")
@click.option("--frames", type=click.IntRange(1, 100_000), default=20, show_default=True,
              help="Frames to compare, spread evenly over SOURCE.")  # fmt: skip
@click.option("--precision", "precisions", type=_OfSide(_PRECISIONS), multiple=True,
              metavar="N:NAME", help="Build engine 1 (A) or 2 (B) in fp32, fp16, bf16, int8 or "
              "best; it is kept in memory.")  # fmt: skip
@click.option("--backend", "backends", type=_OfSide(), multiple=True, metavar="N:NAME",
              help="Run engine 1 (A) or 2 (B) with onnxruntime, openvino, onnxruntime-cuda or "
              "tensorrt.")  # fmt: skip
@click.option("--iou", type=FiniteRange(0.5, 1), default=0.98, show_default=True,
              help="Boxes of a pair that overlap less differ.")  # fmt: skip
@click.option("--score", type=FiniteRange(0, 1), default=0.01, show_default=True,
              help="Scores of a pair further apart differ.")  # fmt: skip
@click.option("--layers/--no-layers", default=True,
              help="Compare engines that depart tensor by tensor.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write an HTML report with images.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Treat every warning as an error.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@run_options("compare", device="Where engines run")
def compare(
    a: Path,
    b: Path,
    source: str,
    frames: int,
    precisions: tuple[tuple[int, str], ...],
    backends: tuple[tuple[int, str], ...],
    iou: float,
    score: float,
    layers: bool,
    output: Path | None,
    strict: bool,
    as_json: bool,
    run: RunOptions,
    settings: list[GivenKey],
) -> int:
    """Run A and B on the same frames of SOURCE, and name the stage that makes them differ.

    A and B are configs, bare models or engine files; an engine runs with the config of the other.
    Each stage of B (input, engine, parser, threshold, cluster, attach, labels) alone takes the
    place of A's: its effect is the change of the objects. Engines that depart are compared tensor
    by tensor. SOURCE is an image, a folder, a video or an address.
    """
    from headrace._core.errors import MediaError
    from headrace._core.notices import refuse_warnings
    from headrace.config.overrides import distributed
    from headrace.diagnose.compare import SideSpec, Tolerance
    from headrace.diagnose.compare import compare as compare_models

    if output is not None and not output.parent.is_dir():  # known before any work
        raise MediaError("there is no such folder", where=str(output.parent))
    overrides = distributed(settings, [a.name, b.name])
    precision, backend = dict(precisions), dict(backends)
    first, second = (
        SideSpec(path, overrides[n], cast("Precision | None", precision.get(n)), backend.get(n))
        for n, path in enumerate((a, b))
    )
    with RunProgress(enabled=not as_json) as progress:
        progress.stage("opening")
        result = compare_models(
            first,
            second,
            source,
            frames=frames,
            tolerance=Tolerance(iou, score),
            layers=layers,
            **run.arguments(compare_models),
            on_frame=lambda done, total: progress.at(done, total, "comparing"),
        )
    refuse_warnings(result.notices, strict=strict)
    if output is not None:
        result.write_html(output)
    print_notices(result.notices)
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result)
    return 0 if result.same else 1


def _print(result: Comparison) -> None:
    echo(result.verdict, bold=True)
    for line in result.also:
        echo(f"also {line}")
    echo()
    echo(f"A  {result.a}")
    echo(f"B  {result.b}")
    if result.unit:
        echo(_boxes(result), lines=True)
    _print_stages(result)
    for title, counts in (
        ("boxes that B lacks, by the key that drops them", result.lost),
        ("boxes that A lacks, by the key that drops them", result.new),
    ):
        if counts:
            text = ", ".join(f"{key} {number}" for key, number in counts.most_common(6))
            echo()
            echo(f"{title}, in {result.looked_up} frames: {text}")
    if result.layers is not None:
        _print_layers(result)
    heads = ["ms per frame", "A", "B", "B / A"]
    echo()
    print_table(heads, [time.row for time in result.times], right=heads[1:])


def _boxes(result: Comparison) -> str:
    total = result.total
    text = f"\n{total.boxes_a} {result.unit} of A, {total.boxes_b} of B, {total.matched} pairs"
    for number, name in (
        (total.only_a, "only in A"), (total.only_b, "only in B"),
        (total.class_changed, "of another class"), (total.label_changed, "of another label"),
    ):  # fmt: skip
        text += f", {number} {name}" if number else ""
    if total.matched:
        from headrace.diagnose.compare.matching import Spread

        drift, loss = Spread.of(total.score_changes), Spread.of(1 - total.ious)
        text += f"\nscore drift: median {drift.median:.2g}, 95 % {drift.p95:.2g}"
        text += f", largest {drift.largest:.2g}"
        text += f"; 1 - IoU: median {loss.median:.2g}, 95 % {loss.p95:.2g}, "
        text += f"largest {loss.largest:.2g}"
    return text


def _print_stages(result: Comparison) -> None:
    from headrace.diagnose.compare.comparison import changes_text
    from headrace.diagnose.compare.stage_drift import signal

    heads = ["stage", "state", "signal", "lost", "new", "moved", "settings that differ"]
    rows = []
    for stage in result.stages:
        state, drift = result.state_of(stage), signal(stage.decibels)
        effect, keys = _effect_cells(result, stage), changes_text(stage.keys)
        rows.append([stage.name, state, drift, *effect, keys])
    echo()
    print_table(heads, rows, right=heads[2:6])


def _effect_cells(result: Comparison, stage: StageDrift) -> list[str]:
    if not result.unit:
        return ["", "", ""]
    effect = stage.effect
    moved = effect.beyond(result.tolerance) - effect.only_a - effect.only_b
    return [str(effect.only_a or ""), str(effect.only_b or ""), str(moved or "")]


def _print_layers(result: Comparison) -> None:
    layers = result.layers
    assert layers is not None
    if layers.missing:
        echo()
        echo(f"no layers: {layers.missing}")
        return
    most = sorted(layers.tensors, key=lambda t: -t.loss)[: _SHOWN_LAYERS - 2]
    heads = ["tensor", "node", "operator", "in B", "signal", "largest"]
    rows = [
        [t.name, t.node, t.operator, t.precision, f"{t.decibels:.1f} dB", f"{t.largest:.3g}"]
        for t in layers.tensors
        if t is layers.first or t is layers.worst or (t in most and t.loss > 0)
    ]
    how = "by name" if layers.by_name else "by place and shape"
    echo(f"\nlayers on the same input, {len(layers.tensors)} tensors paired {how};", lines=True)
    echo("the first that departs, those that lose most, and the worst:")
    print_table(heads, rows, right=heads[4:])
