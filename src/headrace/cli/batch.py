"""`headrace batch`: models over many videos and images, each result exactly once."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace._core.text import counted, duration_text, quoted
from headrace._core.threads import say_failure, start_thread
from headrace.cli.inputs import parted
from headrace.cli.options import run_options
from headrace.cli.output import (
    FiniteRange,
    echo,
    print_error,
    print_json,
    print_notices,
    print_table,
)
from headrace.cli.progress import RunProgress
from headrace.cli.running import keep_warm_interpreter

if TYPE_CHECKING:
    from headrace.batches.batch_run import BatchReport
    from headrace.batches.driver import BatchProgress
    from headrace.batches.estimate import BatchEstimate
    from headrace.config.overrides import GivenKey
    from headrace.infer.run_options import RunOptions

_MOST_ERRORS = 5

EPILOG = """\b
CONFIG is that of headrace run: nvinfer configs, a bare model, or a pipeline file.

\b
INPUT is a video or image, a folder (with all below it), a quoted pattern ('clips/*.mp4'), a
list (.txt, a name on each line), a manifest (.csv or .parquet with a column "input"; other
columns go into the results), or the URL of one: s3:// (pip install s3fs), gs:// (gcsfs), az://
(adlfs), http:// (fsspec aiohttp). Each file is a unit of its own, long videos are split into
several.

\b
DIR has
  objects/run=…/shard=…/*.parquet   one row per object: open it with pandas, DuckDB or Polars
  frames/run=…/shard=…/*.parquet    one row per frame, also without objects
  manifest.parquet                  input, hash, frames, objects, seconds, outcome, error
  ledger.jsonl                      the same as it grows

\b
Examples:
  headrace batch config_infer_primary.txt archive/ -o results
  headrace batch config_infer_primary.txt 'clips/*.mp4' -o results --jsonl --video
  headrace batch pgie.txt sgie.txt videos.csv -o results --resume --retry-failed
  headrace batch yolov8n.onnx archive/ -o results --plan
  headrace batch config_infer_primary.txt s3://bucket/videos/ -o results --on ray://head:10001
  headrace batch report results
  headrace batch config_infer_primary.txt archive/ -o s3://bucket/results/
  headrace batch -o results --verify
"""


class _ResultsPath(click.Path):
    """A folder, or the URL of a storage elsewhere."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or the URL as it is."""
        from headrace.batches.bucket import is_bucket

        if is_bucket(value):
            return value
        return super().convert(str(value).removeprefix("file://"), param, ctx)


class _WithReport(click.Command):
    """`headrace batch report DIR` beside `headrace batch CONFIG… INPUT…`."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:  # fmt: skip
        """The context of the report, where its name comes first."""
        if args[:1] == ["report"]:
            return report.make_context(f"{info_name} report", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(cls=_WithReport, epilog=EPILOG)
@click.argument("inputs", nargs=-1, metavar="CONFIG... INPUT...")
@click.option("-o", "--out", required=True, type=_ResultsPath(), metavar="DIR",
              help="Folder of the results, or a URL: s3://bucket/results/.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on in a folder that has results of this batch.")
@click.option("--retry-failed", is_flag=True,
              help="With --resume: run inputs, or spans of videos, again that failed.")  # fmt: skip
@click.option("--retries", type=click.IntRange(0, 100), default=1, show_default=True, metavar="N",
              help="Try a failing input, or span of a video, so often again.")  # fmt: skip
@click.option("--unit-timeout", type=FiniteRange(0, 1e7, min_open=True), metavar="SECONDS",
              help="Give an attempt at an input, or span, up that takes longer.")  # fmt: skip
@click.option("--max-failed", type=click.IntRange(0), metavar="N",
              help="End the run when more than N inputs, or spans, have failed.")  # fmt: skip
@click.option("--price", type=FiniteRange(0, 1e6), metavar="PRICE",
              help="With --plan: what a core hour costs, to print what all cost.")  # fmt: skip
@click.option("--verify", is_flag=True,
              help="Read all results again and hold them against the ledger; alone, run "
              "nothing.")  # fmt: skip
@click.option("--plan", is_flag=True, help="Time a few inputs and print the cost of all.")
@click.option("--jsonl", is_flag=True, help="Write JSON Lines for each input, too.")
@click.option("--coco", is_flag=True, help="Write COCO JSON for each input, too.")
@click.option("--video", is_flag=True, help="Write an annotated video for each input, too.")
@click.option("--split", "split_s", type=FiniteRange(0, 86400), metavar="SECONDS",
              help="Split videos that are twice as long at key frames; 0 splits none. Default: 60, "
              "less where inputs are few.")  # fmt: skip
@click.option("--tracker", metavar="TRACKER",
              help="As for headrace run; videos stay whole then.")  # fmt: skip
@click.option("--workers", type=click.IntRange(1, 1024), metavar="N",
              help="Worker processes. Default: measured, at most one per core.")  # fmt: skip
@click.option("--on", default="local", show_default=True, metavar="WHERE",
              help="local, ray (this machine or RAY_ADDRESS), or ray://HOST:PORT.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Treat every warning before the run as an error.")
@click.option("-q", "--quiet", is_flag=True, help="Only warnings and errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on stdout.")
@run_options(
    "batch",
    threads="CPU threads of each worker's engines. Default: cores per worker.",
    device="Where engines run and videos are decoded (workers share a GPU; on Ray, cuda gives "
    "each actor its own)",
    limit="Stop each input after this many frames.",
)
def batch(
    inputs: tuple[str, ...],
    out: Path | str,
    verify: bool,
    plan: bool,
    strict: bool,
    quiet: bool,
    as_json: bool,
    price: float | None,
    run: RunOptions,
    settings: list[GivenKey],
    **options: Any,
) -> int:
    """Run models over many videos and images, on every core or on a Ray cluster.

    Each input's results are there exactly once, or not at all. A run that ended early, for
    whatever reason, goes on with --resume and does what is missing.
    """
    if price is not None and not plan:
        raise click.UsageError("--price goes with --plan")
    if verify and not inputs:
        return _verify(out)
    if not inputs:
        raise click.UsageError("Missing argument 'CONFIG... INPUT...'.")
    pipeline, configs, names = parted(inputs, lists=True)
    if not names and pipeline is None:
        raise click.UsageError(
            "Missing argument 'INPUT...': a video, folder, pattern, list or URL."
        )
    from headrace.batches.processes import AHEAD

    keep_warm_interpreter(AHEAD)
    from headrace.batches.batch_run import BatchOptions
    from headrace.batches.running import batch_run
    from headrace.batches.tables import TABLES

    tracker = options.pop("tracker")
    kinds = [kind for kind in ("jsonl", "coco", "video") if options.pop(kind)]
    whole = batch_run(
        configs if pipeline is None else [pipeline],
        names,
        out,
        tracker=tracker,
        settings=settings,
        kinds=(*TABLES, *kinds),
        run=run,
        options=BatchOptions(**options),
    )
    quiet = quiet or as_json
    shown: set[Any] = set()

    def ready(notices: Sequence[Any], placement: Any) -> None:
        from headrace._core.notices import refuse_warnings

        refuse_warnings(list(notices), strict=strict)
        print_notices(notices, quiet=quiet)
        shown.update(notices)
        if not quiet:
            echo(f"workers: {placement.workers}, threads of each: {placement.threads}", err=True)

    def tell(notice: Any) -> None:
        print_notices([notice], quiet=quiet)
        shown.add(notice)

    with RunProgress(enabled=not quiet, unit="inputs or parts of videos") as progress:
        whole.on_stage, whole.on_ready, whole.on_notice = progress.stage, ready, tell
        if plan:
            estimate = whole.plan(price)
        else:
            total = _Total(whole.inputs)
            result = whole.run(lambda at: progress.at(*total.at(at), _words(at)))
    if plan:
        print_json(estimate.to_dict()) if as_json else _print_estimate(estimate)
        return 0
    code = _verify(out) if verify else 0
    print_notices([n for n in result.notices if n not in shown], quiet=quiet)
    print_json(result.to_dict()) if as_json else _print(result, hints=not quiet)
    if result.progress.interrupted:
        return 130
    return code or int(not result.complete)


class _Total:
    """Counts the inputs of a batch beside it; None until that is done."""

    def __init__(self, names: Sequence[str]) -> None:
        self.count: int | None = None
        if not any("://" in name for name in names):
            name = "headrace-count"
            start_thread(partial(self._run, names), name=name, failed=partial(say_failure, name))

    def _run(self, names: Sequence[str]) -> None:
        from headrace._core.errors import HeadraceError
        from headrace.batches.inputs import expand_inputs

        try:
            self.count = sum(1 for _ in expand_inputs(names))
        except HeadraceError:  # the run itself says so
            self.count = None

    def at(self, at: BatchProgress) -> tuple[int, int | None]:
        """Units that are finished, and of how many: spans of a video count each."""
        finished = at.done + at.before + at.failed + at.failed_before
        return finished, None if self.count is None else self.count + at.spans


def _words(at: BatchProgress) -> str:
    fps = at.frames / at.seconds if at.seconds else 0.0
    failed = f", {at.failed} failed" if at.failed else ""
    return f"{at.done} done{failed}, {fps:.0f} fps"


def _print(result: BatchReport, *, hints: bool) -> None:
    at = result.progress
    fps = at.frames / at.seconds if at.seconds else 0.0
    state = "stopped:" if at.interrupted else "done:"
    done = f"{counted(at.done, 'part')} of {counted(at.inputs, 'input')}"
    done = done if at.spans else counted(at.done, "input")
    counts = [done, counted(at.frames, "frame"), counted(at.objects, "object")]
    counts += [f"{at.failed} failed"] if at.failed else []
    earlier = [f"{at.before} were done before"] if at.before else []
    earlier += [f"{at.failed_before} failed before"] if at.failed_before else []
    if earlier and not (at.done or at.failed or at.interrupted):
        echo(f"nothing was left to do: {', '.join(earlier)}")
    else:
        took = f"in {at.seconds:.1f} s ({fps:.1f} fps)"
        echo(f"{state} {', '.join([*counts, *earlier])} {took}")
    for name, text in at.errors[:_MOST_ERRORS]:
        text, name = text.replace(name, quoted(name, limit=None)), quoted(name, limit=None)
        head, _, rest = text.partition("\n")
        print_error(f"{head if name in head else f'{name}: {head}'}", "failed: ")
        if rest:
            echo(rest, err=True)
    if len(at.errors) > _MOST_ERRORS:
        echo("and more: manifest.parquet has every error", err=True)
    echo(f"wrote {result.path}")
    if hints and result.total.get("done"):
        _print_hints(result.path)
    if at.interrupted:
        echo("go on with --resume")


def _print_hints(path: Path | str) -> None:
    """Say how to read the results."""
    objects = f"{str(path).rstrip('/')}/objects"
    page = "" if isinstance(path, Path) else " -o report.html"
    echo(f"  its objects: pandas.read_parquet({objects!r}), or DuckDB, Polars; frames beside it")
    echo(f"  a page of it: headrace batch report {shlex.quote(str(path))}{page}")


def _print_estimate(estimate: BatchEstimate) -> None:
    e = estimate
    low, here, high = e.seconds
    echo(f"{counted(e.inputs, 'input')}, {e.timed} timed: about {counted(e.frames, 'frame')}")
    spread = f" ({duration_text(low)} to {duration_text(high)})" if high > low else ""
    echo(f"on this machine: {duration_text(here)}{spread}, workers: {e.workers}, "
               f"threads of each: {e.threads}, cores: {e.cores}")  # fmt: skip
    echo(f"core hours: {e.core_seconds / 3600:.3g}, "
               f"{e.core_hours_per_million_frames:.3g} per million frames")  # fmt: skip
    if e.price is not None:
        each = e.price / max(1, e.frames) * 1e6
        echo(f"price: {_money(e.price)}, {_money(each)} per million frames")
    echo(f"memory: {e.memory_bytes / 1e6:.0f} MB; read: {e.read_bytes / 1e6:.1f} MB; "
               f"written: {e.written_bytes / 1e6:.1f} MB")  # fmt: skip
    heads = ("machines like this one", "time")
    rows = [(str(nodes), duration_text(seconds)) for nodes, seconds in e.nodes]
    print_table(heads, rows, right=heads)


def _money(amount: float) -> str:
    return f"{amount:.2f}" if amount >= 1 else f"{amount:.2g}"


def _verify(out: Path | str) -> int:
    from headrace.batches.manifest import verify

    files, faults, done, failed = verify(out)
    for fault in faults[:20]:
        print_error(fault, "fault: ")
    lacking = f", {failed} failed or lost" if failed else ""
    echo(f"{files} result files read, {len(faults)} faults; {counted(done, 'input')} done{lacking}")
    if faults:
        echo("go on with --resume: what is lost runs again", err=True)
    return int(bool(faults))


@click.command()
@click.argument("folder", metavar="DIR", type=_ResultsPath())
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
              help="The page. Default: DIR/report.html.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON on stdout.")
def report(folder: Path | str, out: Path | None, as_json: bool) -> int:
    """Write an HTML page about a batch: totals, classes over time, slow and failed inputs."""
    from headrace._core.pages import write_page
    from headrace.batches.bucket import is_bucket
    from headrace.batches.page import batch_page
    from headrace.batches.summary import summarised

    if out is None and is_bucket(folder) and not as_json:
        raise click.UsageError("The page of a bucket needs -o FILE.html on this machine.")
    summary = summarised(folder)
    if as_json:
        print_json(summary.to_dict())
        return 0
    target = write_page(out or Path(folder, "report.html"), batch_page(summary))
    echo(f"wrote {target}")
    return 0
