"""`noria demo`: an ordinary run on the scene that ships with noria."""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

import click

from noria.cli.output import print_json
from noria.errors import MediaError

__all__ = ["demo", "scene_dir"]

EPILOG = """\b
Examples:
  noria demo
  noria demo --out somewhere --limit 50
"""

_SHEET_FRAMES = 9


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
        fix="reinstall noria, or run from a source checkout",
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
    """Run the whole pipeline on the demo scene.

    The scene's files are copied to the output folder, so that its config can be changed and run
    again with the `noria run` line that is printed.
    """
    from noria.cli.run import execute, print_report, spec_of
    from noria.pipeline.assembly import RunOptions

    scene = out / "scene"
    _copy_scene(scene_dir(), scene)
    config, clip = scene / "config_infer_primary.txt", scene / "conveyor.mp4"
    video, lines = out / "annotated.mp4", out / "detections.jsonl"
    sheet = out / "contact_sheet.png"
    outs = (str(video), str(lines))
    spec = spec_of((str(config), str(clip)), outs)
    report = execute(spec, RunOptions(limit=limit, threads=threads), quiet=as_json)
    _draw_sheet(video, sheet, report.frames)
    report.outputs.append(str(sheet))
    if as_json:
        print_json(report.to_dict())
    else:
        print_report(report)
        click.echo("\nthe same by hand, with a config you can change:")
        click.echo("  " + shlex.join(["noria", "run", str(config), str(clip), "-o", str(video)]))
    return 130 if report.interrupted else 0


def _draw_sheet(video: Path, sheet: Path, count: int) -> None:
    """Evenly spaced frames of the annotated video on one picture."""
    from noria.draw.contact_sheet import contact_sheet
    from noria.media import open_source

    step = max(1, count // _SHEET_FRAMES)
    with open_source(str(video)) as frames:
        chosen = [f for i, f in enumerate(frames) if i % step == step // 2]
    contact_sheet(chosen[:_SHEET_FRAMES], sheet, columns=3)


def _copy_scene(source: Path, target: Path) -> None:
    """Copy what the run needs; files the user has changed there are left as they are."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        for item in sorted(source.iterdir()):
            copy = target / item.name
            if item.is_file() and item.suffix != ".engine" and not copy.exists():
                partial = copy.with_name(f".{copy.name}.{os.getpid()}")
                shutil.copyfile(item, partial)
                partial.replace(copy)
    except OSError as error:
        raise MediaError(
            f"the scene cannot be copied to {target}: {error.strerror}",
            fix="choose another folder: noria demo --out FOLDER",
        ) from error
