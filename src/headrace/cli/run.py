"""`headrace run`: sources through models into files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.notices import Notice
from headrace._core.text import quoted
from headrace.cli.device_option import with_device
from headrace.cli.output import print_json, print_notices, printable, stdout_is_for_results
from headrace.cli.overriding import overridable, with_results
from headrace.cli.running import finish_on_signal, is_routine, say_aside

if TYPE_CHECKING:
    from headrace.cli.live_page import LivePage
    from headrace.config import PipelineSpec
    from headrace.config.overrides import GivenKey
    from headrace.pipeline import Pipeline, RunReport
    from headrace.pipeline.assembly import AssemblyOptions

_LOOK_S = 0.5  # how often a run looks for streams that went away
CONFIG_SUFFIXES = (".txt", ".yml", ".yaml", ".ini", ".cfg", ".conf", ".onnx")

EPILOG = """\b
CONFIG is an nvinfer config, INI or YAML. Several run one after the other: first those on
whole frames, then those on the objects found. Or it is a pipeline file, which names sources,
models and outputs itself: Headrace's own YAML, or a deepstream-app config. Or it is a bare model,
.onnx: what a config would say is read from it, and said; headrace init writes it down.

\b
SOURCE is a video file, an image, a folder, a quoted pattern ('photos/*.jpg'), a URL
(rtsp://, http://) or a camera (/dev/video0). Several run side by side; one that fails does
not disturb the others (exit code 6).

\b
OUT is chosen by its extension, or written as kind:path:
  out.mp4 .mkv .mov   annotated H.264 video, several sources as tiles
  out.jsonl           one JSON object per frame
  out.json            COCO
  out.parquet         one row per object
  images:DIR          annotated pictures, one per frame
  kitti:DIR           one KITTI text file per frame
  dota:DIR            one DOTA text file per frame: corners of rotated boxes
  masks:DIR           class maps of segmentation
With {source} or {id} in it there is one for each source: -o '{source}.mp4'

\b
Examples:
  headrace run yolov8n.onnx video.mp4 -o out.mp4
  headrace run config_infer_primary.txt video.mp4 -o out.mp4
  headrace run config_infer_primary.txt video.mp4 -o out.mp4 -o out.jsonl -o coco:out.json
  headrace run pgie.txt sgie.txt video.mp4 --tracker iou -o out.mp4
  headrace run pgie.txt left.mp4 right.mp4 -o tiles.mp4 -o '{source}.jsonl'
  headrace run config_infer_primary.yml 'photos/*.jpg' -o images:drawn --threads 2
  headrace run config_infer_primary.txt rtsp://camera/stream --limit 500 -o out.jsonl --json
  headrace run config_infer_primary.txt video.mp4 --conf 0.4 --set cluster-mode=2
  headrace run pipeline.yml
"""

_VIEW = "view:"  # the output that is a page


@click.command(epilog=EPILOG)
@click.argument("inputs", nargs=-1, required=True, metavar="CONFIG... SOURCE...")
@click.option(
    "-o",
    "--out",
    "outs",
    multiple=True,
    metavar="OUT",
    help="Where results go (below); repeatable.",
)
@click.option(
    "--tracker",
    metavar="TRACKER",
    help="Follow objects from frame to frame: iou, sort, bytetrack, ocsort or cbiou, with settings "
    "like iou:max_age=30, or a YAML file. Default: none, or the pipeline file's.",
)
@click.option(
    "--analytics",
    metavar="FILE",
    type=click.Path(),
    help="Count objects in regions and across lines: a config file of nvdsanalytics. Lines need a "
    "tracker.",
)
@click.option(
    "--threads", type=click.IntRange(1, 1024), metavar="N", help="CPU threads of each engine."
)
@click.option(
    "--streams",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Batches run at once, sharing the threads. Default: one per thread, at most 4, or 1 for "
    "live sources.",
)
@with_device("Where engines run and videos are decoded", several=True)
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Share many sources among N processes; one process cannot fill a GPU. Writes JSON Lines "
    "only. Default: one for each device.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Stop each source after this many frames."
)
@click.option(
    "--abi",
    type=click.Choice(["auto", "24", "28"]),
    help="Bytes per box of a C++ parser (24: DeepStream 5 to 8, 28: 9). Default: detect.",
)
@click.option(
    "--guard",
    type=click.Choice(["auto", "always", "never"]),
    help="Run custom libraries in worker processes, so that their crashes are survived. auto: C++ "
    "libraries that are not trusted yet (headrace trust). Default: the config's "
    "custom-lib-guard, or "
    "auto.",
)
@click.option(
    "--profile",
    type=click.Choice(["nvinfer", "modern"]),
    help="Whose rules scale pictures and place boxes where the config's keys leave it open: those "
    "of the original, or those that models are trained with. Default: the config's profile, or "
    "nvinfer.",
)
@click.option(
    "--generation",
    type=click.Choice(["9.1", "6.2"]),
    default="9.1",
    show_default=True,
    help="Whose rules apply where releases differ.",
)
@click.option(
    "--palette",
    type=click.Choice(["auto", "config"]),
    default="auto",
    show_default=True,
    help="Box colours: one per class where the config sets none, or exactly the config's.",
)
@click.option(
    "--view",
    is_flag=False,
    flag_value="",
    metavar="HOST:PORT",
    help="Show the run in a browser: a page at 127.0.0.1:8088, or --view=HOST:PORT. Other machines "
    "may connect where HEADRACE_VIEW_TOKEN holds a token. -o view:HOST:PORT does the same.",
)
@click.option("--rebuild", is_flag=True, help="Build engines even if valid ones are saved.")
@click.option("--strict", is_flag=True, help="Treat every warning as an error.")
@click.option("-q", "--quiet", is_flag=True, help="Only warnings and errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on stdout.")
@with_results
@overridable
def run(
    inputs: tuple[str, ...],
    outs: tuple[str, ...],
    tracker: str | None,
    analytics: str | None,
    view: str | None,
    as_json: bool,
    quiet: bool,
    strict: bool,
    processes: int | None,
    given: list[GivenKey],
    **options: Any,
) -> int:
    """Run models on sources and write annotated videos and what was found."""
    from headrace.cli.live_page import live_page
    from headrace.pipeline.assembly import AssemblyOptions

    outs, view = _without_view(outs, view)
    clash = "--json and -o jsonl:- both write to standard output; choose one"
    if as_json and any(out.endswith(":-") for out in outs):
        raise click.UsageError(clash)
    spec = _spec(inputs, outs, tracker, analytics, given)
    lines = any(sink.text is not None and sink.text.endswith(":-") for sink in spec.sinks)
    if as_json and lines:
        raise click.UsageError(clash)
    processes = processes or len(options["device"].split(","))
    if processes > 1 and view is not None:
        raise click.UsageError("--view shows one process; leave --processes out")
    with stdout_is_for_results() if lines else nullcontext():
        made, silent = AssemblyOptions(**options), quiet or as_json
        if processes > 1:
            from headrace.cli.shared_run import execute_shares

            again = partial(_spec, inputs, outs, tracker, analytics, given)
            report = execute_shares(again, made, processes, strict=strict, quiet=silent)
        else:
            page = None if view is None else live_page(spec, made, view)
            report = execute(spec, made, strict=strict, quiet=silent, page=page)
        if not (quiet or as_json):
            print_report(report)
    if as_json:
        print_json(report.to_dict())
    if report.interrupted:
        return 130
    failed = any(source.state == "failed" for source in report.sources)
    return MediaError.exit_code if failed else 0


def _without_view(outs: Sequence[str], view: str | None) -> tuple[tuple[str, ...], str | None]:
    """The outputs that are none of the page, and the page's address: that of `-o view:` too.

    Raises:
        click.UsageError: there are several.
    """
    pages = [out.removeprefix(_VIEW) for out in outs if out.startswith(_VIEW)]
    if len(pages) + (view is not None) > 1:
        raise click.UsageError("a run has one page: give --view or -o view: once")
    return tuple(out for out in outs if not out.startswith(_VIEW)), pages[0] if pages else view


def _spec(
    inputs: Sequence[str],
    outs: Sequence[str],
    tracker: str | None,
    analytics: str | None,
    given: list[GivenKey],
) -> PipelineSpec:
    """The pipeline that a command line means, with the keys that it sets."""
    return spec_of(inputs, outs, tracker, analytics).with_models_overridden(given)


def spec_of(
    inputs: Sequence[str],
    outs: Sequence[str] = (),
    tracker: str | None = None,
    analytics: str | None = None,
) -> PipelineSpec:
    """The pipeline that a command line means.

    Args:
        inputs: a pipeline file, maybe sources instead of its own; or configs, then sources.
        outs: outputs; with a pipeline file they replace its own.
        tracker: as `open_tracker` takes it; replaces the pipeline file's.
        analytics: path of a config file of `nvdsanalytics`; replaces the pipeline file's.

    Raises:
        click.UsageError: no config or no source is given, or configs and sources are mixed.
        ConfigError: the pipeline file cannot be read, or there is no such config.
    """
    from headrace.config import ModelConfig, is_pipeline_file, load_pipeline
    from headrace.media.names import IMAGE_SUFFIXES
    from headrace.pipeline.opening import pipeline_spec

    if is_pipeline_file(inputs[0]):
        spec, configs, names = load_pipeline(inputs[0]), None, inputs[1:]
        if any(_is_config(name) for name in names):
            raise click.UsageError(f"{inputs[0]} is a pipeline file; it names its configs itself")
    else:
        count = 1 + next(
            (i for i, name in enumerate(inputs[1:]) if not _is_config(name)), len(inputs) - 1
        )
        spec, configs, names = None, inputs[:count], inputs[count:]
        if not _is_config(inputs[0]) and any(map(_is_config, inputs[1:])):
            text = f"{inputs[0]} stands where a config should; configs come first"
            raise click.UsageError(text)
        if not names:
            for name in configs:
                if not Path(name).exists():
                    ModelConfig.load(name)  # it says what there is instead
            taken = ", ".join(configs)
            text = "Missing argument 'SOURCE...': a video, image, folder or URL"
            raise click.UsageError(f"{text}, behind the config or model {taken}.")
        late = next((name for name in names if _is_config(name)), None)
        if late is not None:
            raise click.UsageError(f"{late} stands behind a source; configs come first")
    if len(names) > 1 and all(Path(n).suffix.lower() in IMAGE_SUFFIXES for n in names):
        raise click.UsageError(
            f"{len(names)} pictures are given one by one; a pattern must be quoted "
            "('photos/*.jpg') to be one source, or name their folder"
        )
    return pipeline_spec(
        spec,
        configs=configs,
        sources=names,
        outputs=outs,
        tracker=tracker,
        analytics=analytics,
    )


def _is_config(name: str) -> bool:
    """Whether an argument is one more config and not a source."""
    return name.lower().endswith(CONFIG_SUFFIXES)


def execute(
    spec: PipelineSpec,
    options: AssemblyOptions | None = None,
    *,
    strict: bool = False,
    quiet: bool = False,
    page: LivePage | None = None,
) -> RunReport:
    """Set a pipeline up, run it with progress, and print its notices once.

    Raises:
        HeadraceError: from any stage, its notices printed; or from `without_results`: a model had
            no results at all.
    """
    from headrace._core.notices import refuse_warnings
    from headrace.cli.progress import RunProgress
    from headrace.custom.in_process import crashes_are_noted
    from headrace.pipeline.assembly import assemble, without_results

    said: list[Notice] = []
    show = print_notices if page is None else page.tell
    log = None if page is None else page.log
    say = say_aside if log is None else log.info

    def tell(notices: list[Notice]) -> None:
        """Print the notices that concern this run; `print_report` prints the routine ones later."""
        if strict:
            refuse_warnings(notices)
        show([n for n in notices if log is not None or not is_routine(n)], quiet=quiet)

    def ready(notices: list[Notice]) -> None:
        said.extend(notices)
        tell(said)

    with RunProgress(enabled=not quiet) as progress, crashes_are_noted():
        try:
            made = assemble(
                spec,
                options,
                on_stage=progress.stage,
                on_ready=ready,
                on_result=lambda _: progress.step(),
                sinks=[] if page is None else [page.sink],
            )
        except HeadraceError as refusal:
            if quiet:
                refusal.notices = [n for n in refusal.notices if n.level == "warning"]
            raise
        progress.stage("running", total=_total(made.pipeline, options))
        try:
            with finish_on_signal(made.pipeline.stop, say), _tell_losses(made.pipeline, show):
                if page is not None:
                    page.start(made.pipeline)
                report = made.pipeline.run()
        finally:
            made.close()
            if page is not None:
                page.close()
    tell([n for n in report.notices if n not in said])
    error = without_results(report)
    if error is not None:
        raise error
    return report


def _total(pipeline: Pipeline, options: AssemblyOptions | None) -> int | None:
    """Frames to come, if every source knows."""
    limit = None if options is None else options.limit
    total = 0
    for source in pipeline.sources:
        count = limit if source.frames is None else min(source.frames, limit or source.frames)
        if count is None:
            return None
        total += count
    return total


@contextmanager
def _tell_losses(pipeline: Pipeline, show: Callable[[list[Notice]], None]) -> Iterator[None]:
    """Tell that a stream is away while it is: the run may wait for it without end.

    Its notice, which says how that ended, is printed with the others.
    """
    from headrace.media.sources.reconnect import AWAY

    over = threading.Event()
    shown: set[tuple[int, int]] = set()

    def watch() -> None:
        while not over.wait(_LOOK_S):
            for source in pipeline.sources:
                for place, notice in enumerate(list(source.notices)):
                    loss = source.source_id, place
                    if AWAY in notice.message and loss not in shown:
                        shown.add(loss)
                        show([notice])

    watcher = threading.Thread(target=watch, name="headrace-losses", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def print_report(report: RunReport, *, notes: bool = True) -> None:
    """Print the summary of a run, and behind it its routine notes."""
    kinds = (f"{n} {quoted(name)}" for name, n in report.objects.most_common(8))
    found = ", ".join(kinds) or "no objects"
    more = len(report.objects) - 8
    if more > 0:
        found += f", and {more} more kinds"
    maps = any(m.results.get("class_maps") for m in report.models)
    reasons = [(model.name, reason) for model in report.models for reason in model.reasons]
    if report.objects or not maps:
        if reasons and not report.objects:
            found += f": {reasons.pop(0)[1]}"
        click.echo(printable(f"found {found}"))
    for source_id, counts in report.crossed.items():
        of = f"source {source_id}: " if len(report.sources) > 1 else ""
        crossed = ", ".join(f"{n} over {quoted(name)}" for name, n in counts.items())
        click.echo(printable(f"counted {of}{crossed}"))
    for name, reason in reasons:
        click.echo(printable(f"  {name}: {reason}"))
    for model in report.models:
        if len(report.models) > 1 or not report.objects or model.reasons:
            click.echo(printable(f"  {model}"))
        if model.failed:
            what = f"{model.failed} of {model.inferred} outputs of {model.name}"
            click.echo(printable(f"{what} could not be parsed"))
    state = "stopped after" if report.interrupted else "done:"
    profile = f", profile {report.profile}" if report.profile else ""
    click.echo(
        f"{state} {report.frames} frames in {report.seconds:.1f} s ({report.fps:.1f} fps{profile})"
    )
    if on_gpu := [m.name for m in report.models if m.device.startswith("cuda")]:
        decoded = sum(source.decoder == "cuda" for source in report.sources)
        videos = f"{decoded} of {len(report.sources)} source(s) decoded there"
        click.echo(printable(f"on the GPU: {', '.join(on_gpu)}; {videos}"))
    if len(report.sources) > 1:
        for source in report.sources:
            text = f"  {source.source_id}: {source.name}: {source.frames} frames, {source.state}"
            click.echo(printable(text + (f", {source.dropped} dropped" if source.dropped else "")))
    for output in report.outputs:
        click.echo(printable(f"wrote {output}"))
    if notes:
        print_notices([n for n in report.notices if is_routine(n)])
