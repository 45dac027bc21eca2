"""`headrace replay`: recorded tensors decoded again, and calls that ended their worker."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.options import run_options
from headrace.cli.output import FiniteRange, echo, print_notices

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey
    from headrace.custom.guard.repro import Case


_REPLAY_EPILOG = """\b
Examples:
  headrace replay street.safetensors
  headrace replay street.safetensors config_infer_primary.txt --set pre-cluster-threshold=0.3
  headrace replay street.safetensors --custom-lib libmy_parser.so --func ParseBoxes
  headrace replay ~/.local/state/headrace/crashes/20260301-101500.000000-libparser-ParseBoxes
  headrace replay FOLDER --guard --timeout 2
  gdb -ex run --args python -m headrace replay FOLDER
  LD_PRELOAD=$(g++ -print-file-name=libasan.so) headrace replay FOLDER --library libparser_asan.so
"""
_UNNOTICED = (
    "only workers guard the ends of outputs: what the library does past them is not noticed in "
    "this process, which may die of it later; --guard shows it, and so does a sanitizer"
)
_OTHER = (
    "the fault did not recur in this build of the library, which is not the one that failed then"
)
_SAME = (
    "the fault did not recur in the same library: what earlier calls left in it, and the "
    "environment of that time, are not repeated"
)


@click.command(epilog=_REPLAY_EPILOG)
@click.argument("place", type=click.Path(exists=True, path_type=Path), metavar="FILE|FOLDER")
@click.argument("configs", nargs=-1, type=click.Path(exists=True, path_type=Path),
                metavar="[CONFIG]...")  # fmt: skip
@click.option("--custom-lib", type=click.Path(path_type=Path), metavar="LIBRARY",
              help="Of a recording: decode with this library, C++ or Python.")  # fmt: skip
@click.option("--func", metavar="NAME",
              help="Of a recording: the parser in it.")  # fmt: skip
@click.option("--tolerance", type=FiniteRange(0, 1e6), default=1e-3, show_default=True,
              metavar="NUMBER",
              help="Of a recording: largest difference of coordinates and scores.")  # fmt: skip
@click.option("-q", "--quiet", is_flag=True,
              help="Of a recording: print differences only.")  # fmt: skip
@click.option(
    "--library",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Of a call: another build of the library, with debug information or sanitizers.",
)
@click.option("--guard", is_flag=True, help="In a worker process: of a call, print how it ends.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, 1e6),
    metavar="SECONDS",
    help="Limit of a call; default: what it was when the call was saved. 0 sets none.",
)
@run_options("replay")
def replay(
    place: Path,
    configs: tuple[Path, ...],
    custom_lib: Path | None,
    func: str | None,
    tolerance: float,
    quiet: bool,
    library: Path | None,
    guard: bool,
    timeout: float | None,
    settings: list[GivenKey],
) -> int:
    """Decode a recording again without the model, or repeat a call that ended a worker.

    FILE is a recording of headrace record. Its tensors go through the parser and the clustering of
    CONFIG; without one, of the recording. Exit code 1: the result differs from the recorded one.

    FOLDER is a call of a custom library, saved when it ended its worker process. It runs in this
    process, so that a debugger or a sanitizer sees it: if the library crashes, so does this
    command. If it does not return in time, this command ends; in a debugger it does not.
    """
    if place.is_dir():
        if configs or custom_lib or func or settings or quiet:
            raise click.UsageError(f"{place} is a saved call: it has no other parser or config")
        return _repeat_call(place, library, guard, timeout)
    if library is not None or timeout is not None:
        raise click.UsageError(
            f"{place} is a recording: --library and --timeout go with a saved call; a recording "
            "takes --custom-lib"
        )
    return _decode(place, configs, custom_lib, func, tolerance, quiet, guard, settings)


def _decode(
    file: Path,
    configs: tuple[Path, ...],
    custom_lib: Path | None,
    func: str | None,
    tolerance: float,
    quiet: bool,
    guard: bool,
    settings: list[GivenKey],
) -> int:
    from headrace._core.findings import Finding
    from headrace.config import ModelConfig
    from headrace.config.overrides import distributed
    from headrace.custom.in_process import crashes_are_noted
    from headrace.infer.recordings import load_recording, replay_recording, result_text

    recording = load_recording(file)
    if settings and not configs:
        raise click.UsageError(f"{settings[0].shown[0]} goes with a CONFIG")
    each = distributed(settings, [path.name for path in configs]) if configs else ()
    loaded = [ModelConfig.load(p, over) for p, over in zip(configs, each, strict=True)]
    notices: list[Finding] = []
    count, differ = 0, 0
    first = ""
    with crashes_are_noted():
        for done in replay_recording(
            recording, loaded, custom_lib=custom_lib, function=func, tolerance=tolerance,
            guard="always" if guard else None, notices=notices,
        ):  # fmt: skip
            count += 1
            if not quiet:
                echo(f"{done.item.place}: {result_text(done.item, done.result)}", lines=True)
            if done.difference is not None:
                differ += 1
                text = f"{done.item.place}: {done.difference}"
                first = first or text
                echo(f"  differs: {text if quiet else done.difference}", lines=True)
    print_notices(notices)
    if differ:
        text = f"{differ} of {count} differ from the recording; the first: {first}"
        echo(text, err=True)
        return 1
    echo(f"all {count} as recorded")
    return 0


def _repeat_call(folder: Path, library: Path | None, guard: bool, timeout: float | None) -> int:
    from headrace.custom.in_process import debugged
    from headrace.diagnose.replay import repeat, title
    from headrace.infer.model.guarded_cases import load_case

    case, arrays, said = load_case(folder)
    path = (library or case.library).absolute()
    other = _is_other(path, case)
    frame = f", frame {said['frame']} of {said.get('source')}" if "frame" in said else ""
    echo(f"{path}: {title(case)}{frame}", err=True)
    echo(f"then: {said.get('found', '')}", err=True)
    if other and library is None:
        echo("note: the library was compiled anew, or replaced, since then", err=True)
    print_notices(getattr(case.args, "notices", ()))
    past = not guard and said.get("past_the_end") is True
    if past:
        # before the call: what it overwrites here may end this process at any time
        echo(f"warning: {_UNNOTICED}", err=True)
    if not guard and not debugged():
        echo(_before(folder, library), err=True)
    outcome, notices = repeat(
        case, arrays, path, guard=guard, timeout_s=case.timeout_s if timeout is None else timeout
    )
    echo(f"now: {outcome}"[:2000])
    if not past:
        echo(_OTHER if other else _SAME, err=True)
    print_notices(notices, quiet=True)
    return 0


def _is_other(path: Path, case: Case) -> bool:
    from headrace.custom.guard.trust import content_hash

    return path.is_file() and content_hash(path) != case.sha256


def _before(folder: Path, library: Path | None) -> str:
    """Announce the call: a process that crashes cannot report any more."""
    words = ["headrace", "replay", str(folder)]
    if library is not None:
        words += ["--library", str(library)]
    again = shlex.join(words)
    return (
        "now it runs in this process: if it crashes again, this program ends with that signal"
        f"\n  in gdb:      gdb -ex run --args {shlex.quote(sys.executable)} -m {again}"
        f"\n  in a worker: {again} --guard"
    )
