"""`headrace tune`: search settings against a truth."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace._core.errors import ConfigError, MediaError
from headrace._core.files import os_errors
from headrace.cli.options import run_options
from headrace.cli.output import FiniteRange, echo, print_json, print_notices, print_table
from headrace.cli.progress import RunProgress
from headrace.cli.running import opened_for_frames

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.diagnose.evaluate.track_search import TrackSearch, TrackTrial
    from headrace.infer.run_options import RunOptions
    from headrace.media.frame import Frame
    from headrace.meta import FrameMeta

EPILOG = """\b
Examples:
  headrace tune tracker config.txt video.mp4 --truth gt.txt
  headrace tune tracker config.txt video.mp4 --truth gt.txt --tracker nvdcf-perf -o tracker.yml
  headrace tune tracker config.txt video.mp4 --truth gt.txt --key max_age --key min_iou
"""


@click.command(epilog=EPILOG)
@click.argument("what", type=click.Choice(["tracker"]))
@click.argument("inputs", nargs=-1, required=True, metavar="CONFIG... VIDEO")
@click.option("--truth", required=True, type=click.Path(path_type=Path, dir_okay=False),
              metavar="FILE",
              help="True tracks: MOTChallenge's text, JSON Lines, or COCO's JSON with "
              "track_id.")  # fmt: skip
@click.option("--tracker", "spec", default="iou", show_default=True, metavar="TRACKER",
              help="As for headrace run: the search starts at it.")  # fmt: skip
@click.option("--key", "keys", multiple=True, metavar="NAME",
              help="A setting to search; repeatable. Default: all with a known range.")  # fmt: skip
@click.option("--trials", type=click.IntRange(1, 10000), default=40, show_default=True,
              metavar="N", help="Sets of settings to try.")  # fmt: skip
@click.option("--held-out", type=FiniteRange(0.1, 0.9), default=1 / 3, metavar="SHARE",
              help="Share of the frames, the last ones, that the search never uses. "
              "Default: a third.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="N",
              help="Of the random numbers.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.yml",
              help="Write the best tracker as a file.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the trials as JSON on stdout.")
@run_options("record")
def tune(
    what: str,
    inputs: tuple[str, ...],
    truth: Path,
    spec: str,
    keys: tuple[str, ...],
    trials: int,
    held_out: float,
    seed: int,
    output: Path | None,
    quiet: bool,
    as_json: bool,
    run: RunOptions,
    settings: list[GivenKey],
) -> int:
    """Search the settings of a tracker against HOTA, and show the best for accuracy and time.

    The models find the objects once; each set of settings then tracks them on the same frames. The
    last frames are held out: a set that is better on the others alone is not chosen.
    """
    from headrace.diagnose.evaluate.track_search import search_tracker, searched_settings
    from headrace.diagnose.evaluate.tracks import read_tracks
    from headrace.infer.batch import frame_meta
    from headrace.media import open_source
    from headrace.pipeline.track.open import tracker_text

    if output is not None and output.exists():
        raise ConfigError("there is a file of that name", where=str(output), expected="a new one")
    true, searched = read_tracks(truth), searched_settings(spec, keys)
    metas: list[FrameMeta] = []
    with opened_for_frames(inputs, settings, run, "detecting", quiet=quiet) as opened:
        source, uri = opened.pipeline.sources[0], inputs[-1]
        for image in source:
            meta = frame_meta(image)
            for model in opened.inferencers:
                model(image, meta)
            metas.append(meta)
        notices = opened.notices
    if not Path(uri).exists() or len(metas) < max(true, default=0):
        raise MediaError(
            f"the video has {len(metas)} frames, the truth {max(true, default=0)}", where=uri
        )

    def play() -> Iterator[tuple[Frame, FrameMeta]]:
        with open_source(uri) as frames:
            yield from zip(frames, map(deepcopy, metas), strict=False)

    with RunProgress(enabled=not quiet) as progress:
        search = search_tracker(
            spec, play, true, searched, trials=trials, held_out=held_out, seed=seed,
            on_round=lambda done: progress.stage(f"tried {done} of {trials}"),
        )  # fmt: skip
    print_notices(notices)
    best = search.best
    if as_json:
        front = [trial.to_dict() for trial in search.front]
        every = [trial.to_dict() for trial in search.trials]
        print_json({"tracker": search.tracker, "held_out_from": search.split,
                    "start": search.start.to_dict(), "best": best.to_dict(), "front": front,
                    "trials": every})  # fmt: skip
    else:
        _show(search)
    if output is not None:
        with os_errors(ConfigError, "the file cannot be written", output):
            output.write_text(tracker_text(spec, best.changes), "utf-8")
        if not as_json:
            echo(f"wrote {output}")
    return 0


def _show(search: TrackSearch) -> None:
    """Print the front as a table, and the choice."""
    heads = ["HOTA", "held out", "IDF1", "switches", "us/object"]
    best = search.best
    rows = [_row("start", search.start)]
    rows += [
        _row("best" if trial is best else "", trial)
        for trial in search.front
        if trial is not search.start
    ]
    print_table(["set", *heads, "settings"], rows, right=heads)
    echo(f"held out: frames from {search.split} on; {len(search.trials) - 1} sets were tried")
    if best is search.start:
        echo("no set is better on both parts: the tracker stays as it is")


def _row(title: str, trial: TrackTrial) -> list[str]:
    text = ", ".join(f"{name}={value}" for name, value in trial.changes.items()) or "unchanged"
    numbers: list[Any] = [100 * trial.tuned.hota, 100 * trial.held_out.hota, 100 * trial.tuned.idf1]
    return [
        title, *(f"{v:.1f}" for v in numbers), str(trial.tuned.switches),
        f"{trial.us_per_object:.1f}", text,
    ]  # fmt: skip
