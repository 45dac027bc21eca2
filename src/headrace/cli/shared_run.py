"""`headrace run --processes`: the same run in several processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding
from headrace.cli.ending import STOP_S, finish_on_signal
from headrace.cli.output import print_notices
from headrace.cli.progress import RunProgress
from headrace.cli.running import is_routine, keep_warm_interpreter, say_aside

if TYPE_CHECKING:
    from headrace.config import PipelineSpec
    from headrace.infer.run_options import RunOptions
    from headrace.pipeline import RunReport
    from headrace.pipeline.process_count import ProcessCount


def count_processes(
    make_spec: Callable[[], PipelineSpec], options: RunOptions, *, quiet: bool = False
) -> ProcessCount:
    """Choose how many processes a run takes, with progress: `--processes auto`.

    Raises:
        HeadraceError: as `choose_processes`.
    """
    from headrace.pipeline.process_count import choose_processes
    from headrace.pipeline.shares import AHEAD

    keep_warm_interpreter(AHEAD)  # before threads begin
    with RunProgress(enabled=not quiet) as progress:
        return choose_processes(make_spec, options, progress.stage)


def execute_shares(
    make_spec: Callable[[], PipelineSpec],
    options: RunOptions,
    processes: int,
    *,
    strict: bool = False,
    quiet: bool = False,
) -> RunReport:
    """Run with progress, as `headrace.cli.run.execute` does in one process.

    Raises:
        HeadraceError: as `SharedRun`; or from `without_results`.
    """
    from headrace.pipeline.report import without_results
    from headrace.pipeline.shares import AHEAD, SharedRun

    keep_warm_interpreter(AHEAD)  # before threads begin
    said: list[Finding] = []

    def tell(notices: list[Finding]) -> None:
        said.extend(notices)
        print_notices([n for n in notices if not is_routine(n)], quiet=quiet)

    with RunProgress(enabled=not quiet) as progress:
        shared = SharedRun(
            make_spec,
            options,
            processes,
            strict,
            on_notices=tell,
            on_frames=lambda frames: progress.at(frames, None, "running"),
        )
        progress.stage("loading or building engines")
        try:
            shared.begin()
        except HeadraceError as refusal:
            refusal.notices = [
                n for n in refusal.notices if n not in said and (n.level == "warning" or not quiet)
            ]
            raise
        progress.stage("running")
        with finish_on_signal(partial(shared.stop, STOP_S), say_aside):
            report = shared.run()
    tell([n for n in report.notices if n not in said])
    error = without_results(report)
    if error is not None:
        raise error
    return report
