"""`headrace run`: sources through models into files."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from headrace._core.errors import HeadraceError, MediaError
from headrace._core.findings import Finding
from headrace._core.text import counted, printable, quoted
from headrace._core.threads import say_failure, start_thread
from headrace._core.urls import url_scheme
from headrace.cli.ending import SERVICE_STOP_S, STOP_S, finish_on_signal
from headrace.cli.inputs import spec_of, with_looks
from headrace.cli.options import run_options
from headrace.cli.output import echo, print_json, print_notices, stdout_is_for_results
from headrace.cli.running import is_routine, say_aside
from headrace.config.pipeline_keys import STREAM_SCHEMES

if TYPE_CHECKING:
    from logging import Logger

    from headrace.cli.live_page import LivePage
    from headrace.config import PipelineSpec
    from headrace.config.enums import Generation
    from headrace.config.overrides import GivenKey
    from headrace.infer.run_options import RunOptions
    from headrace.media import Sink, Source
    from headrace.pipeline import Pipeline, RunReport

_LOOK_S = 0.5  # how often a run looks for streams that went away
_SAID_AT_ONCE = ("connection-away", "page-ended")

_RULES = {"nvinfer": "rules of the original", "modern": "rules of training"}
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
  images:DIR          annotated images, one per frame
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
_AUTO, _MOST_PROCESSES = 0, 64


class _Processes(click.ParamType["int"]):
    name = "N|auto"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """The number, `_AUTO` for the word; refuses all else."""
        text = str(value)
        if text == "auto" or value == _AUTO:
            return _AUTO
        if not (text.isdecimal() and len(text) < 3 and 1 <= int(text) <= _MOST_PROCESSES):
            self.fail(f"{text!r} is neither 1 to {_MOST_PROCESSES} nor auto", param, ctx)
        return int(text)


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
    "--append",
    is_flag=True,
    help="Empty no output of an earlier run: lines go on, videos and tables get the next number, "
    "and what a killed run left is finished.",
)
@click.option(
    "--tracker",
    metavar="TRACKER",
    help="Follow objects from frame to frame: iou, sort, bytetrack, ocsort, cbiou, botsort, nviou, "
    "nvsort, nvdcf-perf, nvdcf-max-perf, nvdcf-accuracy, nvdeepsort or nvmot, with settings "
    "like iou:max_age=30, or a YAML file. Default: none, or the pipeline file's.",
)
@click.option(
    "--reid",
    metavar="MODEL",
    type=click.Path(),
    help="A ReID model (ONNX) beside the tracker, iou without one: an object that was lost keeps "
    "its id when it comes back and looks the same.",
)
@click.option(
    "--analytics",
    metavar="FILE",
    type=click.Path(),
    help="Count objects in regions and across lines: a config file of nvdsanalytics. Lines need a "
    "tracker.",
)
@click.option(
    "--processes",
    type=_Processes(),
    metavar="N|auto",
    help="Share many sources among N processes; one process cannot fill a GPU. Writes JSON Lines "
    "and files of each source. auto: measured on a GPU. Default: one for each device.",
)
@click.option(
    "--view",
    is_flag=False,
    flag_value="",
    metavar="HOST:PORT",
    help="Show the run in a browser: a page at 127.0.0.1:8088, or --view=HOST:PORT. Other machines "
    "may connect where HEADRACE_VIEW_TOKEN holds a token. -o view:HOST:PORT does the same.",
)
@click.option("--strict", is_flag=True, help="Treat every warning as an error.")
@click.option("-q", "--quiet", is_flag=True, help="Only warnings and errors; no rates.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on stdout.")
@run_options("run")
def run(
    inputs: tuple[str, ...],
    outs: tuple[str, ...],
    append: bool,
    tracker: str | None,
    reid: str | None,
    analytics: str | None,
    view: str | None,
    as_json: bool,
    quiet: bool,
    strict: bool,
    processes: int | None,
    run: RunOptions,
    settings: list[GivenKey],
) -> int:
    """Run models on sources and write annotated videos and what was found."""
    outs, view = _without_view(outs, view)
    clash = "--json and -o jsonl:- both write to standard output; choose one"
    if as_json and any(out.endswith(":-") for out in outs):
        raise click.UsageError(clash)
    make_spec = partial(
        _spec, inputs, outs, tracker, reid, analytics, settings, append, run.generation
    )
    spec = make_spec()
    lines = any(sink.text is not None and sink.text.endswith(":-") for sink in spec.sinks)
    if as_json and lines:
        raise click.UsageError(clash)
    silent, choice = quiet or as_json, None
    if processes is None:
        processes = len(run.device.split(","))
    if processes != 1 and view is not None:
        raise click.UsageError("--view shows one process; leave --processes out")
    if processes == _AUTO:
        from headrace.cli.shared_run import count_processes

        choice = count_processes(make_spec, run, quiet=silent)
        processes = choice.processes
    with stdout_is_for_results() if lines else nullcontext():
        if processes > 1:
            from headrace.cli.shared_run import execute_shares

            report = execute_shares(make_spec, run, processes, strict=strict, quiet=silent)
        else:
            page = _page(spec, run, view, strict)
            report = execute(spec, run, strict=strict, quiet=silent, page=page)
        if choice is not None:
            report.notices.insert(0, choice.notice)
        if not (quiet or as_json):
            print_report(report)
    if as_json:
        print_json(report.to_dict())
    if report.interrupted:
        return 130
    if any(source.state == "failed" for source in report.sources):
        return MediaError.exit_code
    return exit_code_of_messages(report)


def _page(spec: PipelineSpec, run: RunOptions, view: str | None, strict: bool) -> LivePage | None:
    """The page of `--view`, or the service that a pipeline file asks for: both at one address.

    A service that cannot be is a warning, unless `strict`.
    """
    if view is None and spec.rest is None:
        return None
    from headrace.cli.live_page import live_page

    if spec.rest is None:
        return live_page(spec, run, view or "")
    try:
        from headrace.live.allowed import AllowedSources, ServiceRules

        rules = ServiceRules(AllowedSources(()), False)
        return live_page(spec, run, view or spec.rest, service=rules)
    except HeadraceError as error:
        if strict or view is not None:
            raise
        text = f"the run is not driven over HTTP at {spec.rest}: {error:brief}"
        print_notices([Finding("element-left-out", "warning", text, str(spec.origin("rest")))])
        return None


def exit_code_of_messages(report: RunReport) -> int:
    """`EXIT_UNSENT` if messages wait for a broker or are lost, else 0."""
    from headrace.cli import EXIT_UNSENT

    return EXIT_UNSENT if any(d.waiting or d.lost for d in report.messages) else 0


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
    reid: str | None,
    analytics: str | None,
    settings: list[GivenKey],
    append: bool,
    generation: Generation | None,
) -> PipelineSpec:
    """The pipeline that a command line means, with the keys that it sets."""
    spec = spec_of(inputs, outs, tracker, analytics, generation).with_models_overridden(settings)
    if reid is not None:
        spec = spec.changed(tracker=with_looks(spec.tracker, reid))
    return spec.changed(append=True) if append else spec


def execute(
    spec: PipelineSpec,
    options: RunOptions | None = None,
    *,
    strict: bool = False,
    quiet: bool = False,
    page: LivePage | None = None,
) -> RunReport:
    """Set a pipeline up, run it with progress, and print its notices once.

    Raises:
        HeadraceError: from any stage, its notices printed; or from `without_results`: a model had
            no results at all, unless a page judged it as not ready.
    """
    from headrace._core.notices import refuse_warnings
    from headrace.cli.progress import RunProgress
    from headrace.custom.in_process import crashes_are_noted
    from headrace.infer.run_options import RunOptions
    from headrace.pipeline.assembly import Assembling
    from headrace.pipeline.notice_follower import NoticeFollower
    from headrace.pipeline.report import without_results

    gc.freeze()  # what is imported stays: garbage is looked for among what the run makes
    gc.set_threshold(10_000)
    said: list[Finding] = []
    show = print_notices if page is None else page.tell
    log = None if page is None else page.log
    service = page is not None and page.service
    if quiet and not service and spec.rates_interval_s:
        spec = spec.changed(rates_interval_s=0.0)
    say = say_aside if log is None else partial(log.info, extra={"event": "stopping"})

    def tell(notices: list[Finding]) -> None:
        """Print the notices that concern this run; `print_report` prints the routine ones later.

        A service prints all: one that is killed has no later.
        """
        refuse_warnings(notices, strict=strict)
        show([n for n in notices if service or not is_routine(n)], quiet=quiet and not service)

    def ready(notices: list[Finding]) -> None:
        said.extend(notices)
        tell(said)

    with RunProgress(enabled=not quiet) as progress, crashes_are_noted():
        try:
            assembly = Assembling(
                spec=spec,
                options=options or RunOptions(),
                on_stage=progress.stage,
                on_ready=ready,
                on_result=lambda _: progress.step(),
                sinks=[] if page is None else [page.sink],
                write_rates=None if log is None else partial(_log_rates, log),
            ).assemble()
        except HeadraceError as refusal:
            if quiet:
                refusal.notices = [n for n in refusal.notices if n.level == "warning"]
            raise
        progress.stage("running", total=_total(assembly.pipeline, options))
        watching: AbstractContextManager[Any] = _tell_losses(assembly.pipeline, show)
        stop_s = STOP_S
        if page is not None and page.service:
            watching, stop_s = page.watch(assembly.pipeline, said), SERVICE_STOP_S
        try:
            with (
                finish_on_signal(
                    partial(assembly.pipeline.stop, stop_s),
                    say,
                    lambda: assembly.pipeline.finishing,
                    stop_s,
                ),
                watching as follower,
            ):
                if page is not None:
                    page.start(assembly.pipeline)
                report = assembly.pipeline.run()
                if isinstance(follower, NoticeFollower):
                    follower.look()
                    said += [n for n in report.notices if follower.was_told(n)]
        finally:
            if not assembly.pipeline.left:
                assembly.close()
            if page is not None:
                page.close()
    tell([n for n in report.notices if n not in said])
    error = without_results(report)
    if error is not None and not (page is not None and page.not_ready):
        raise error
    return report


def _log_rates(log: Logger, line: str) -> None:
    log.info("%s", printable(line.strip()), extra={"event": "rates"})


def _total(pipeline: Pipeline, options: RunOptions | None) -> int | None:
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
def _tell_losses(pipeline: Pipeline, show: Callable[[list[Finding]], None]) -> Iterator[None]:
    """Tell that a stream or a broker is away while it is: the run may wait for it without end.

    Its notice, which says how that ended, is printed with the others.
    """
    over = threading.Event()
    shown: set[tuple[int, int]] = set()

    def watch() -> None:
        while not over.wait(_LOOK_S):
            parts: list[Source | Sink] = [*pipeline.sources, *pipeline.sinks]
            for part in parts:
                for index, notice in enumerate(list(part.notices)):
                    loss = id(part), index
                    if notice.code in _SAID_AT_ONCE and loss not in shown:
                        with suppress(OSError, ValueError):  # nobody reads standard error now
                            show([notice])
                            shown.add(loss)

    name = "headrace-losses"
    watcher = start_thread(watch, name=name, failed=partial(say_failure, name))
    try:
        yield
    finally:
        over.set()
        watcher.join()


def print_report(report: RunReport, *, notes: bool = True) -> None:
    """Print the summary of a run, and behind it its routine notes."""
    kinds = (f"{n} {quoted(name)}" for name, n in report.objects.most_common(8))
    summary = ", ".join(kinds) or "no objects"
    more = len(report.objects) - 8
    if more > 0:
        summary += f", and {more} more kinds"
    maps = any(m.results.get("class_maps") for m in report.models)
    reasons = [(model.name, reason) for model in report.models for reason in model.reasons]
    if report.objects or not maps:
        if reasons and not report.objects:
            summary += f": {reasons.pop(0)[1]}"
        echo(f"found {summary}")
    for source_id, counts in report.crossed.items():
        of = f"source {source_id}: " if len(report.sources) > 1 else ""
        crossed = ", ".join(f"{n} over {quoted(name)}" for name, n in counts.items())
        echo(f"counted {of}{crossed}")
    for name, reason in reasons:
        echo(f"  {name}: {reason}")
    for model in report.models:
        if len(report.models) > 1 or not report.objects or model.reasons:
            echo(f"  {model}")
        if model.failed:
            what = f"{model.failed} of {model.inferred} outputs of {model.name}"
            echo(f"{what} could not be parsed")
    state = "stopped after" if report.interrupted else "done:"
    profile = f", profile {report.profile}: {_RULES[report.profile]}" if report.profile else ""
    took = f"{report.seconds:.1f} s ({report.fps:.1f} fps{profile})"
    echo(f"{state} {counted(report.frames, 'frame')} in {took}")
    if on_gpu := [m.name for m in report.models if m.device.startswith("cuda")]:
        decoded = sum(source.decoder == "cuda" for source in report.sources)
        videos = f"{decoded} of {len(report.sources)} source(s) decoded there"
        echo(f"on the GPU: {', '.join(on_gpu)}; {videos}")
    if len(report.sources) > 1:
        for source in report.sources:
            text = f"  {source.source_id}: {source.name}: "
            text += f"{counted(source.frames, 'frame')}, {source.state}"
            echo(text + (f", {source.dropped} dropped" if source.dropped else ""))
    reported = {delivery.output for delivery in report.messages}
    for output in report.outputs:
        if output not in reported:
            verb = "sent images to" if url_scheme(output) in STREAM_SCHEMES else "wrote"
            echo(f"{verb} {output}")
    for delivery in report.messages:
        states = ("sent", "waiting", "refused", "lost")
        parts = (f"{n} {state}" for state in states if (n := getattr(delivery, state)))
        echo(f"messages to {delivery.output}: {', '.join(parts) or 'none'}")
    if notes:
        print_notices([n for n in report.notices if is_routine(n)])
