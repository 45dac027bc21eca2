"""`headrace record`: output tensors of frames in a file, for tests of parsers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace._core.text import counted
from headrace.cli.options import run_options
from headrace.cli.output import echo, print_notices
from headrace.cli.running import opened_for_frames

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.infer.run_options import RunOptions

EPILOG = """\b
CONFIG and SOURCE are those of headrace run: one or more nvinfer configs, primary ones first, a bare
model, or a pipeline file, which has sources of its own; the first is taken.

\b
Examples:
  headrace record config_infer_primary.txt street.mp4 -o street.safetensors --limit 10
  headrace record pgie.txt sgie.txt street.mp4 -o street.safetensors --frames 3,7,9
  headrace record yolov8n.onnx street.jpg -o street.safetensors --conf 0.4
  headrace replay street.safetensors
"""


class _Frames(click.ParamType["tuple[int, ...]"]):
    name = "N,N,…"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The numbers; refuses texts that are none."""
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(part.strip().isdecimal() and len(part) < 12 for part in parts):
            self.fail(f"{value!r} is no list of frames: give numbers from 0, as 3,7,9", param, ctx)
        return tuple(map(int, parts))


@click.command(epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="CONFIG... SOURCE")
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path, dir_okay=False),
              metavar="FILE.safetensors",
              help="The file; it appears once it is whole.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), metavar="N",
              help="Most frames to record.")  # fmt: skip
@click.option("--frames", type=_Frames(), metavar="N,N,…",
              help="Numbers of the frames to record, from 0. Default: all.")  # fmt: skip
@run_options("record")
def record(
    inputs: tuple[str, ...],
    out: Path,
    limit: int | None,
    frames: tuple[int, ...] | None,
    run: RunOptions,
    settings: list[GivenKey],
) -> int:
    """Keep the output tensors of frames in a file, with all that a parser gets.

    headrace replay decodes them again without the model; tests of your parser read them with the
    fixture headrace_recording. The file is in the safetensors format.
    """
    from headrace.diagnose.recordings import record_frames

    with opened_for_frames(inputs, settings, run, "recording", quiet=False) as opened:
        source, notices = opened.pipeline.sources[0], opened.notices
        done = record_frames(
            opened.inferencers, source, out, limit=limit, frames=frames, notices=notices
        )
    print_notices(done.notices)
    size = out.stat().st_size / 1e6
    counts = f"{counted(done.frames, 'frame')}, {counted(done.items, 'run')} of a model, "
    counts += counted(done.objects, "object")
    echo(f"wrote {out}: {counts}, {size:.1f} MB")
    return 0
