"""Parts that several commands share: notices that can wait, models for single frames."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from headrace._core.findings import Finding
from headrace.cli.ending import without_watch
from headrace.cli.inputs import spec_of
from headrace.cli.output import echo
from headrace.cli.progress import RunProgress

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.infer.run_options import RunOptions
    from headrace.pipeline.assembly import Assembly


def is_routine(notice: Finding) -> bool:
    """Return whether a notice can wait until the results are printed.

    True for every choice that went as expected. What a bare model was taken for is none, but for
    the evidence: its user gave no config to look that up in.
    """
    of_model = (notice.where or "").lower().endswith((".onnx", ".xml"))
    return notice.level == "info" and not (of_model and notice.code != "recognised-from")


def say_aside(text: str) -> None:
    """Print a line on standard error."""
    echo(text, err=True)


def keep_warm_interpreter(ahead: Collection[str]) -> None:
    """Fork the interpreter that processes of a command are forked from: they share its imports.

    The command keeps it to its end. In another program, which may have threads, nothing is done.
    """
    kept = click.get_current_context().meta
    with without_watch() as alone:
        if alone and "headrace.warm" not in kept:
            from headrace._core.fork_here import fork_here

            kept["headrace.warm"] = fork_here(ahead)


@contextmanager
def opened_for_frames(
    inputs: Sequence[str], settings: Sequence[GivenKey], run: RunOptions, stage: str, *, quiet: bool
) -> Iterator[Assembly]:
    """Open the models and the first source of a command line, without tracker and outputs.

    Args:
        inputs, settings, run: of the command line.
        stage: the work that begins then, as the progress shows it.
        quiet: True shows no progress.
    """
    from headrace.custom.in_process import crashes_are_noted
    from headrace.pipeline.assembly import Assembling
    from headrace.pipeline.one_frame import for_one_frame

    spec, models, notices = for_one_frame(
        spec_of(inputs, generation=run.generation).with_models_overridden(settings)
    )
    with RunProgress(enabled=not quiet) as progress, crashes_are_noted():
        options = replace(run, streams=1)
        assembly = Assembling(
            spec=spec, options=options, stages=models, on_stage=progress.stage
        ).assemble()
        try:
            progress.stage(stage)
            assembly.notices += notices
            yield assembly
        finally:
            assembly.close()
