"""`headrace demo`: an ordinary run on the scene that ships with headrace."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace._core.errors import MediaError
from headrace._core.files import PartFile, os_errors
from headrace.cli.output import echo, print_json

if TYPE_CHECKING:
    from headrace.config import PipelineSpec

EPILOG = """\b
Examples:
  headrace demo
  headrace demo --out somewhere --limit 50
"""

_SHEET_FRAMES = 9
_CHARACTERS = 4  # of a code


def scene_dir() -> Path:
    """The folder of the demo scene: inside the package, or beside it in a source checkout.

    Raises:
        MediaError: neither exists.
    """
    package = Path(__file__).parents[1]
    candidates = (package / "conveyor", package.parents[1] / "examples" / "conveyor")
    for folder in candidates:
        if (folder / "config_infer_primary.txt").is_file():
            return folder
    raise MediaError(
        "the demo scene is not part of this installation",
        expected=" or ".join(map(str, candidates)),
        fix="reinstall headrace, or run from a source checkout",
    )


@click.command(epilog=EPILOG)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("out/demo"),
    show_default=True,
    help="Folder for the results.",
)
@click.option("--limit", type=click.IntRange(1), help="Stop after this many frames.")
@click.option("--threads", type=click.IntRange(1, 1024), help="CPU threads of the engine.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def demo(out: Path, limit: int | None, threads: int | None, as_json: bool) -> int:
    """Find parcels on a video, follow them, and read their codes.

    A detector, a tracker and a classifier, as the scene's pipeline.yml names them. The scene's
    files are copied to the output folder, so that they can be changed and run again with the
    `headrace run` lines that are printed.
    """
    from headrace.cli.inputs import spec_of
    from headrace.cli.run import execute, print_report
    from headrace.infer.run_options import RunOptions

    scene = out / "scene"
    _copy_scene(scene_dir(), scene)
    pipeline = scene / "pipeline.yml"
    video, lines = out / "annotated.mp4", out / "found.jsonl"
    sheet = out / "contact_sheet.png"
    spec = spec_of((str(pipeline),), (str(video), str(lines)))
    report = execute(spec, RunOptions(limit=limit, threads=threads), quiet=as_json)
    _draw_sheet(video, sheet, report.frames)
    report.outputs.append(str(sheet.resolve()))
    if as_json:
        print_json(report.to_dict())
    else:
        print_report(report)
        codes = _codes(lines)
        echo(f"read {len(codes)} codes: {' '.join(codes)}" if codes else "read no codes")
        echo("\nthe same by hand, with files you can change:", lines=True)
        echo("  " + shlex.join(["headrace", "run", str(pipeline), "-o", str(video)]))
        echo("or with everything on the command line:")
        echo("  " + shlex.join(_command(spec, video)))
    return 130 if report.interrupted else 0


def _codes(lines: Path) -> list[str]:
    """The complete code that each tracked parcel had most often, in the order of their ids."""
    said: dict[int, Counter[str]] = {}
    with lines.open() as frames:
        for frame in map(json.loads, frames):
            for thing in frame["objects"]:
                for result in thing.get("classifiers", ()):
                    if "object_id" in thing and len(result["labels"]) == _CHARACTERS:
                        code = "".join(label["label"] for label in result["labels"])
                        said.setdefault(thing["object_id"], Counter())[code] += 1
    return [codes.most_common(1)[0][0] for _, codes in sorted(said.items())]


def _command(spec: PipelineSpec, video: Path) -> list[str]:
    """The `headrace run` line without a pipeline file."""
    words = ["headrace", "run", *(_shown(model.config) for model in spec.models)]
    words += [_shown(Path(source.uri)) for source in spec.sources]
    if spec.tracker is not None:
        words += ["--tracker", str(spec.tracker.text)]
    if spec.analytics is not None:
        words += ["--analytics", _shown(spec.analytics)]
    return [*words, "-o", str(video)]


def _shown(path: Path) -> str:
    """A path as short as it can be written here."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def _draw_sheet(video: Path, sheet: Path, count: int) -> None:
    """Evenly spaced frames of the annotated video on one image."""
    from headrace.media import open_source
    from headrace.media.draw.contact_sheet import contact_sheet

    step = max(1, count // _SHEET_FRAMES)
    with open_source(str(video)) as frames:
        chosen = [f for i, f in enumerate(frames) if i % step == step // 2]
    contact_sheet(chosen[:_SHEET_FRAMES], sheet, columns=3)


def _copy_scene(source: Path, target: Path) -> None:
    """Copy the files of the run; those that the user has changed there are left as they are."""
    with os_errors(
        MediaError,
        f"the scene cannot be copied to {target}",
        fix="choose another folder: headrace demo --out FOLDER",
    ):
        target.mkdir(parents=True, exist_ok=True)
        for item in sorted(source.iterdir()):
            copy = target / item.name
            if item.is_file() and item.suffix != ".engine" and not copy.exists():
                with PartFile(copy, copy.with_name(f".{copy.name}.{os.getpid()}")) as part:
                    shutil.copyfile(item, part)
