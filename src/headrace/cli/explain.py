"""`headrace explain`: the decisions of every step on one frame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.options import run_options
from headrace.cli.output import FiniteRange, echo, print_json, print_notices
from headrace.cli.running import opened_for_frames

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.infer.run_options import RunOptions

EPILOG = """\b
CONFIG and SOURCE are those of headrace run: one or more nvinfer configs, primary ones first, a bare
model, or a pipeline file, which has sources of its own; the first is taken.

\b
Examples:
  headrace explain config_infer_primary.txt street.jpg
  headrace explain config_infer_primary.txt video.mp4 --frame 250 -o report.html
  headrace explain config_infer_primary.txt video.mp4 --at 320,200
  headrace explain pgie.txt sgie.txt video.mp4 --box 300,150,80,120 --json
"""


class _Numbers(click.ParamType["tuple[float, ...]"]):
    """So many numbers with commas between."""

    def __init__(self, names: str) -> None:
        self.name = names
        self._count = names.count(",") + 1

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """The numbers; refuses texts that are none, and another count."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(float(part) for part in str(value).split(","))
        except ValueError:
            numbers = ()
        if len(numbers) != self._count:
            self.fail(f"{value!r} is not {self.name}: {self._count} numbers.", param, ctx)
        return numbers


@click.command(epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="CONFIG... SOURCE")
@click.option("--frame", type=click.IntRange(0), metavar="N",
              help="Number of the frame, from 0 [default: 0, or one that shows more].")  # fmt: skip
@click.option("--at", type=_Numbers("X,Y"), metavar="X,Y",
              help="A point of the frame to ask about, in pixels.")  # fmt: skip
@click.option("--box", type=_Numbers("LEFT,TOP,WIDTH,HEIGHT"), metavar="L,T,W,H",
              help="A box of the frame to ask about, in pixels.")  # fmt: skip
@click.option("--floor", type=FiniteRange(1e-6, 1), default=0.01, show_default=True,
              metavar="SCORE", help="Lowest score of a candidate.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
              help="Write a page with images.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@run_options("explain")
def explain(
    inputs: tuple[str, ...],
    frame: int | None,
    at: tuple[float, float] | None,
    box: tuple[float, float, float, float] | None,
    floor: float,
    out: Path | None,
    as_json: bool,
    run: RunOptions,
    settings: list[GivenKey],
) -> int:
    """Show every step from one frame to its objects, and the step that dropped each candidate.

    A candidate is a box of the model, also one below the threshold. For each that became no
    object, the step, the figures and the key to change are named.
    """
    from headrace.diagnose.explain import explain_frame, place_of

    region = place_of(at, box)
    with opened_for_frames(inputs, settings, run, "explaining", quiet=as_json) as opened:
        source = opened.pipeline.sources[0]
        explanation = explain_frame(
            opened.inferencers, source, frame, at=region, floor=floor, notices=opened.notices
        )
    print_notices(explanation.notices)
    if out is not None:
        explanation.write_html(out)
    if as_json:
        print_json(explanation.to_dict())
        return 0
    echo(explanation.summary(), lines=True)
    if out is not None:
        echo(f"wrote {out}")
    return 0
