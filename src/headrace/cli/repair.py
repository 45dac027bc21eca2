"""`headrace repair`: search the set-up that a config was meant to be."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace._core.errors import ConfigError, MediaError
from headrace._core.files import os_errors, refuse_link
from headrace._core.text import counted
from headrace.cli.options import run_options
from headrace.cli.output import FiniteRange, echo, print_error, print_json
from headrace.cli.progress import RunProgress

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.diagnose.repair import Repair, TrueBox
    from headrace.infer.run_options import RunOptions

UNDECIDED = 10
"""Exit code where no set-up is chosen."""

EPILOG = """\b
Examples:
  headrace repair config_infer_primary.txt video.mp4
  headrace repair config_infer_primary.txt video.mp4 --write
  headrace repair config_infer_primary.txt photos/ -o repaired.txt
  headrace repair config_infer_primary.txt video.mp4 --box 40:car:300,150,80,120
  headrace repair model.onnx video.mp4 -o config.txt

\b
Exit codes: 0 nothing to repair, or a set-up was chosen; 10 undecided; others as in headrace --help
"""


class _BoxParam(click.ParamType["TrueBox"]):
    """The frame, the class and the place of a true box."""

    name = "FRAME:[LABEL:]LEFT,TOP,WIDTH,HEIGHT"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> TrueBox:
        """Read it; a label may have colons."""
        from headrace.diagnose.repair import TrueBox

        if isinstance(value, TrueBox):
            return value
        number, _, rest = str(value).partition(":")
        label, _, place = rest.rpartition(":")
        try:
            left, top, width, height = map(float, place.split(","))
            frame = int(number)
        except ValueError:
            self.fail(f"{value!r} is not {self.name}, as 40:car:300,150,80,120.", param, ctx)
        if frame < 0 or not (width > 0 and height > 0):
            self.fail(f"{value!r} has no area, or a frame before the first.", param, ctx)
        return TrueBox(frame, label.strip(), (left, top, width, height))


@click.command(epilog=EPILOG)
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("source")
@click.option("--box", "boxes", type=_BoxParam(), multiple=True, metavar="FRAME:[LABEL:]L,T,W,H",
              help="A true box: frame from 0, class, pixels of the frame; repeatable.")  # fmt: skip
@click.option("--frames", type=click.IntRange(1, 64), default=8, show_default=True,
              help="Frames on which set-ups are tried, spread over the source.")  # fmt: skip
@click.option("--seconds", type=FiniteRange(1, 3600), default=60, show_default=True,
              help="Time for the search.")  # fmt: skip
@click.option("--write", is_flag=True, help="Write the chosen set-up over CONFIG without asking.")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write it as a new file instead.")  # fmt: skip
@click.option("--choose", type=click.IntRange(1, 3), metavar="N",
              help="With --write or -o: take the Nth of the set-ups that are shown.")  # fmt: skip
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.png",
              help="The set-ups side by side. Default: NAME.repair.png here.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@run_options("repair")
def repair(
    config: Path,
    source: str,
    boxes: tuple[TrueBox, ...],
    frames: int,
    seconds: float,
    write: bool,
    out: Path | None,
    choose: int | None,
    picture: Path | None,
    as_json: bool,
    run: RunOptions,
    settings: list[GivenKey],
) -> int:
    """Search the usual mistakes of CONFIG, tried on frames of SOURCE.

    Range, colours, fit, parser, classes, thresholds, clustering and the like are changed, alone and
    together, and what comes out is scored: objects that can be some, in every frame, and none in
    images that show nothing. Shows the three likeliest side by side, and writes one if asked to.
    """
    if write and out is not None:
        raise click.UsageError("--write and -o: one of both says where to write.")
    if choose is not None and not write and out is None:
        raise click.UsageError("--choose says what to write: --write or -o says where.")
    if out is not None and out.exists():
        raise click.UsageError(f"{out} exists: name a new file, or use --write for CONFIG itself.")
    for path in (out, picture, config if write else None):
        if path is not None:
            _require_folder(path)
            with os_errors(ConfigError, "it cannot be written", path):
                refuse_link(path)
    from headrace.diagnose.repair import repair as search

    with RunProgress(enabled=not as_json, unit="set-ups") as progress:
        result = search(
            config,
            source,
            boxes=boxes,
            frames=frames,
            seconds=seconds,
            options=run,
            progress=lambda count, words: progress.at(count, None, words[:60]),
        )
    drawn = None if result.outcome == "nothing" else _drawn(result, picture)
    if not as_json:
        _print(result, drawn)
    written = _written(result, write=write, out=out, choose=choose, ask=not as_json)
    if as_json:
        paths = {"picture": drawn, "written": written}
        texts = {key: None if path is None else str(path) for key, path in paths.items()}
        print_json(result.to_dict() | texts)
    elif written is not None:
        echo(f"wrote {written}")
    elif result.outcome == "chosen":
        echo("nothing is written: --write edits the config, -o FILE writes another one")
    return UNDECIDED if result.outcome == "undecided" and written is None else 0


def _require_folder(path: Path) -> None:
    """Refuse a file that cannot be written, before the search.

    Raises:
        ConfigError: its folder is not there, or nothing can be written in it.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError("it cannot be written: there is no such folder.", where=str(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError("it cannot be written: its folder is read-only.", where=str(path))


def _drawn(result: Repair, path: Path | None) -> Path | None:
    """Write the picture; without a name for it, a folder that takes none is no error."""
    from headrace.diagnose.repair.picture import write_picture

    if all(one.run is None or not one.run.metas for one in result.shown):
        return None  # nothing runs
    try:
        return write_picture(result, path or Path(f"{result.path.stem}.repair.png"))
    except MediaError as error:
        if path is not None:
            raise
        print_error(f"{error:brief}", "warning: ")
        return None


def _print(result: Repair, picture: Path | None) -> None:
    """Print the outcome and its reason."""
    heads = {"nothing": "nothing to repair", "chosen": "chosen", "undecided": "undecided"}
    color = {"nothing": "green", "chosen": "green", "undecided": "yellow"}[result.outcome]
    echo(heads[result.outcome], fg=color, bold=True, nl=False)
    echo(f": {result.reason}")
    tried = f"tried {counted(result.tried, 'set-up')} on {counted(len(result.frames), 'frame')}"
    if result.left_out:
        tried += f"; no time for {result.left_out}: --seconds gives more"
    echo(tried)
    if result.outcome == "nothing":
        return
    for place, candidate in enumerate(result.shown, 1):
        echo()
        echo(f"{place}: score {candidate.score:.3f}")
        for term in candidate.plausibility.terms:
            echo(f"   {term.factor:.2f}  {term.words}")
        why = dict.fromkeys(cure.why for cure in candidate.cures)
        if why:
            echo(f"   because: {'; '.join(why)}")
        echo(result.fix(candidate).diff, lines=True, nl=False)
    if picture is not None:
        echo(f"\npicture: {picture}", lines=True)


def _written(
    result: Repair, *, write: bool, out: Path | None, choose: int | None, ask: bool
) -> Path | None:
    """Write the set-up that is chosen, by the search or by the user; None if none is written."""
    if result.outcome == "nothing":
        return None
    asked_for = write or out is not None
    candidate = result.best if result.outcome == "chosen" else None
    if choose is not None:
        if choose > len(result.shown):
            raise click.UsageError(f"--choose {choose}: {len(result.shown)} are shown.")
        candidate = result.shown[choose - 1]
    elif ask and not asked_for and _on_terminal():
        numbers = [str(number) for number in range(1, len(result.shown) + 1)]
        answer = click.prompt("Write which one?", type=click.Choice([*numbers, "none"]),
                              default="none", err=True)  # fmt: skip
        if answer == "none":
            return None
        candidate, asked_for = result.shown[int(answer) - 1], True
    if candidate is None or not asked_for:
        return None
    return result.write(out, candidate)


def _on_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    except ValueError:  # closed
        return False
