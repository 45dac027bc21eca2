"""`noria run`: a config, a source, outputs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from noria.cli.output import print_json, print_notices, printable, stdout_is_for_results
from noria.errors import ParserError

if TYPE_CHECKING:
    from noria.media import Sink
    from noria.pipeline import Pipeline, RunReport

__all__ = ["execute", "print_report", "run"]

MAX_STREAMS = 4  # each holds the engine's memory for one batch

EPILOG = """\b
SOURCE is a video file, an image, a folder or glob of images, a URL (rtsp://, http://)
or a camera (/dev/video0).

\b
OUT is chosen by its extension, or written as kind:path:
  out.mp4 .mkv .mov   annotated H.264 video
  out.jsonl           one JSON object per frame
  out.json            COCO
  images:DIR          annotated pictures
  kitti:DIR           one KITTI text file per frame

\b
Examples:
  noria run config_infer_primary.txt video.mp4 -o out.mp4
  noria run config_infer_primary.txt video.mp4 -o out.mp4 -o out.jsonl -o coco:out.json
  noria run config_infer_primary.yml 'photos/*.jpg' -o images:drawn --threads 2
  noria run config_infer_primary.txt rtsp://camera/stream --limit 500 -o out.jsonl --json
"""


@click.command(epilog=EPILOG)
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("source")
@click.option(
    "-o", "--out", "outs", multiple=True, metavar="OUT", help="Where results go; repeatable."
)
@click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads of the engine.")
@click.option(
    "--streams",
    type=click.IntRange(1, 64),
    help="Batches run at once, sharing the threads. Default: one per thread, at most 4, for "
    "files; 1 for live sources.",
)
@click.option("--limit", type=click.IntRange(1), help="Stop after this many frames.")
@click.option(
    "--abi",
    type=click.Choice(["auto", "24", "28"]),
    help="Bytes per box of a C++ parser (24: DeepStream 5 to 8, 28: 9). Default: detect.",
)
@click.option(
    "--generation",
    type=click.Choice(["9.1", "6.2"]),
    default="9.1",
    show_default=True,
    help="Whose rules apply to boxes that leave the frame.",
)
@click.option(
    "--palette",
    type=click.Choice(["auto", "config"]),
    default="auto",
    show_default=True,
    help="Box colours: one per class where the config sets none, or exactly the config's.",
)
@click.option("--rebuild", is_flag=True, help="Build the engine even if a valid one is saved.")
@click.option("--strict", is_flag=True, help="Treat every warning as an error.")
@click.option("-q", "--quiet", is_flag=True, help="Only warnings and errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on stdout.")
def run(
    config: Path,
    source: str,
    outs: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Run CONFIG on SOURCE and write the annotated video and the detections."""
    if as_json and any(out.endswith(":-") for out in outs):
        raise click.UsageError("--json and -o jsonl:- both write to standard output; choose one")
    with stdout_is_for_results() if as_json else nullcontext():
        report = execute(config, source, outs, quiet=quiet or as_json, **options)
    if as_json:
        print_json(report.to_dict())
    elif not quiet:
        print_report(report)
    return 130 if report.interrupted else 0


def execute(
    config: Path,
    source: str,
    outs: tuple[str, ...],
    *,
    threads: int | None = None,
    streams: int | None = None,
    limit: int | None = None,
    abi: str | None = None,
    generation: Literal["9.1", "6.2"] = "9.1",
    palette: Literal["auto", "config"] = "auto",
    rebuild: bool = False,
    strict: bool = False,
    quiet: bool = False,
) -> RunReport:
    """Set a pipeline up, run it with progress, and print its notices once.

    Raises:
        NoriaError: from any stage; ParserError if no frame's outputs could be parsed.
    """
    from noria.cli.progress import RunProgress
    from noria.config import ModelConfig
    from noria.draw import Painter
    from noria.infer.inferencer import Inferencer, usable_cores
    from noria.media import check_sinks, open_sink, open_source
    from noria.notices import refuse_warnings
    from noria.pipeline import Pipeline

    cfg = ModelConfig.load(config)
    inputs: list[str | Path] = [source, config, *(v for _, v in cfg if isinstance(v, Path))]
    check_sinks(outs, inputs)  # before anything is built, or an older output replaced
    with RunProgress(enabled=not quiet) as progress:
        progress.stage("opening source")
        frames = open_source(source)
        progress.stage("loading or building engine")
        inferencer = Inferencer.from_config(
            cfg,
            threads=threads,
            streams=streams or (1 if frames.live else min(threads or usable_cores(), MAX_STREAMS)),
            abi=abi,
            rebuild=rebuild,
            generation=generation,
        )
        said = [*inferencer.notices, *frames.notices]
        print_notices(said, quiet=quiet)
        if strict:
            refuse_warnings(said)
        sinks: list[Sink] = []
        try:
            for out in outs:
                taken = [*inputs, *(s.path for s in sinks)]
                taken += [inferencer.engine_path] if inferencer.engine_path else []
                sinks.append(open_sink(out, inputs=taken, fps=frames.fps))
        except BaseException:
            for sink in sinks:
                sink.abort("another output could not be opened")
            frames.close()
            raise
        pipeline = Pipeline(
            frames,
            inferencer,
            sinks,
            painter=Painter(palette=palette),
            limit=limit,
            on_result=lambda _: progress.step(),
        )
        total = frames.frames if limit is None else min(limit, frames.frames or limit)
        progress.stage("running", total=total)
        with _finish_on_signal(pipeline):
            report = pipeline.run()
    late = [n for n in report.notices if n not in said]
    print_notices(late, quiet=quiet)
    inferencer.close()
    if strict:
        refuse_warnings(late)
    broken = [m for m in report.models if m.inferred and m.failed == m.inferred]
    if broken:
        raise ParserError(
            f"none of the {broken[0].inferred} outputs of {broken[0].name} could be parsed",
            where=str(config),
            fix="the warning above says why; noria show CONFIG lists what the model outputs",
        )
    return report


def print_report(report: RunReport) -> None:
    """What a person wants to know after a run."""
    found = ", ".join(f"{n} {name}" for name, n in report.objects.most_common(8)) or "no objects"
    more = len(report.objects) - 8
    if more > 0:
        found += f", and {more} more kinds"
    state = "stopped after" if report.interrupted else "done:"
    click.echo(f"{state} {report.frames} frames in {report.seconds:.1f} s ({report.fps:.1f} fps)")
    click.echo(printable(f"found {found}"))
    if report.failed_frames:
        click.echo(f"{report.failed_frames} of {report.inferred} frames could not be parsed")
    for output in report.outputs:
        click.echo(printable(f"wrote {output}"))


@contextmanager
def _finish_on_signal(pipeline: Pipeline) -> Iterator[None]:
    """First Ctrl-C, SIGTERM or hang-up: finish the files properly. Second: leave at once.

    A signal that is ignored (`nohup`, a background job) stays ignored.
    """

    def finish(number: int, frame: object) -> None:
        for other in previous:
            signal.signal(other, signal.default_int_handler)
        pipeline.stop()
        with suppress(OSError):  # after a hang-up there is nobody to tell
            click.echo("stopping: finishing the files (Ctrl-C again leaves at once)", err=True)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    wanted = [n for n in numbers if signal.getsignal(n) is not signal.SIG_IGN]
    previous = {n: signal.signal(n, finish) for n in wanted}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
