"""`headrace trtexec`: trtexec's options, report lines and exported files, on Headrace's engines.

Start at `options.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import click
import numpy as np

from headrace._core.errors import EngineError, HeadraceError
from headrace._core.files import os_errors
from headrace._core.json_record import finite_data
from headrace._core.text import printable
from headrace._core.types import Array, DType
from headrace.cli.trtexec.engine import Profile, engine_for
from headrace.cli.trtexec.inference import input_values, run_timed
from headrace.cli.trtexec.options import CommandLineError, Options, help_text, parse
from headrace.cli.trtexec.report import (
    Log,
    check_export,
    export_json,
    layer_info,
    output_rows,
    print_blocks,
    print_outputs,
    print_performance,
    print_profile,
    profile_rows,
    time_rows,
)
from headrace.engine.backends import RunnerOptions
from headrace.engine.plan import Plan
from headrace.plugins.registry import get_plugin_registry

_PROFILE_RUNS = 50


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def trtexec(words: tuple[str, ...]) -> int:
    """Build, run and time an engine as trtexec does, with its options."""
    return run_trtexec(words)


def run_trtexec(words: Sequence[str]) -> int:
    """Do the work of trtexec for a command line without the program; return exit status 0 or 1."""
    screen = Log(words)
    screen.running()
    try:
        options = parse(words)
    except CommandLineError as error:
        screen.error(str(error))
        print(help_text())
        return screen.ended(False)
    if not words or options.has("help") or options.has("h"):
        print(help_text())
        return screen.ended(True)
    try:
        if options.has("getPlanVersionOnly") and options.has("loadEngine"):
            _print_plan_version(options)
            return screen.ended(True)
        _check_targets(options)
        print_blocks(screen, options)
        for word, reason in options.without_effect.items():
            screen.warning(f"{word} has no effect: {reason}")
        screen.info('"GPU" in this report names the compute stage: here the CPU computes.')
        _load_plugins(options, screen)
        try:
            plan, profile = engine_for(options, screen)
        except HeadraceError as error:
            screen.error(str(error))
            screen.error("Engine set up failed")
            return screen.ended(False)
        _run(plan, profile, options, screen)
    except HeadraceError as error:
        screen.error(str(error))
        return screen.ended(False)
    except MemoryError:
        screen.error("out of memory")
        return screen.ended(False)
    return screen.ended(True)


def _check_targets(options: Options) -> None:
    """Refuse files that cannot be meant, before anything is built.

    Raises:
        EngineError: two options write one file, a folder is missing, or what stands there is of
            another kind, see `check_export`. `Plan.save` looks again what --saveEngine replaces.
    """
    names = ("saveEngine", "exportTimes", "exportOutput", "exportProfile", "exportLayerInfo")
    taken: dict[Path, str] = {}
    for name in names:
        path = options.path(name)
        if path is None:
            continue
        if name != "saveEngine":
            check_export(path)
        elif not path.parent.is_dir():
            raise EngineError("there is no such folder", where=str(path.parent), fix="make it")
        real = path.resolve()
        other = taken.setdefault(real, name)
        if other != name and (path.is_file() or not path.exists()):  # a pipe may take them all
            raise EngineError(
                f"--{other} and --{name} write the same file",
                where=str(path),
                fix="give each a file of its own",
            )


def _load_plugins(options: Options, screen: Log) -> None:
    screen.info("Loading standard plugins")
    for library in options.libraries:
        screen.info(f"Loading supplied plugin library: {library}")
        get_plugin_registry().load_library(library)


def _print_plan_version(options: Options) -> None:
    path = options.path("loadEngine")
    assert path is not None
    with os_errors(EngineError, "cannot be read", path), open(path, "rb") as file:
        head = file.read(28)
    if head[:4] == b"ftrt" and len(head) == 28:
        version = ".".join(map(str, head[24:28]))
        print(f"Plan was created with TensorRT version {version}")
        return
    header = Plan.load(path).header
    runtime = header.runtime
    made = f"{header.headrace}, {runtime.name} {runtime.version}"
    print(printable(f"Plan was created with headrace version {made}"))


def _run(plan: Plan, profile: Profile, options: Options, screen: Log) -> None:
    layers = None
    if options.has("dumpLayerInfo") or options.has("exportLayerInfo"):
        from headrace.engine.layers import layers_of

        layers = layer_info(plan, layers_of(plan), options.text("profilingVerbosity"))
    if layers is not None and options.has("dumpLayerInfo"):
        screen.info("Layer Information:")
        for line in json.dumps(finite_data(layers), indent=1).splitlines():
            screen.info(line)
    if layers is not None and (path := options.path("exportLayerInfo")):
        export_json(path, layers)
    if options.skip_inference:
        screen.info("Skipped inference phase since --skipInference is added.")
        return
    started = perf_counter()
    streams = options.streams if options.has("infStreams") or options.has("streams") else None
    if streams is None and plan.run_options().streams > 1:
        streams = 1  # tuned for several, measured with one, as trtexec does
    spinning = options.has("useSpinWait")
    with plan.open_session(
        threads=options.threads, streams=streams, spinning=spinning or None
    ) as session:
        screen.info(f"Engine deserialized in {perf_counter() - started:.6g} sec.")
        runner = session.runner
        feeds = _feeds(plan, profile, options, screen)
        for spec in runner.outputs:
            known = [d if isinstance(d, int) else _batch(profile) if i == 0 else None
                     for i, d in enumerate(spec.shape)]  # fmt: skip
            if None in known:
                screen.info(
                    f"Output binding for {spec.name} is dynamic and will be created during "
                    "execution using OutputAllocator."
                )
            else:
                text = "x".join(map(str, known))
                screen.info(f"Output binding for {spec.name} with dimensions {text} is created.")
        screen.info("Starting inference")
        measured = run_timed(runner, feeds, options)
        implicit = options.batch or 1 if options.has("deploy") or options.has("uff") else 1
        print_performance(screen, measured, options, implicit)
        run_options = session.options
    if options.has("dumpOutput"):
        print_outputs(screen, measured.outputs)
    if path := options.path("exportOutput"):
        export_json(path, output_rows(measured.outputs))
    if path := options.path("exportTimes"):
        export_json(path, time_rows(measured.queries))
    if options.has("dumpProfile") or options.has("exportProfile"):
        _profile(plan, run_options, feeds, len(measured.queries), options, screen)


def _profile(
    plan: Plan,
    run_options: RunnerOptions,
    feeds: dict[str, Array],
    runs: int,
    options: Options,
    screen: Log,
) -> None:
    from headrace.engine.layers import layer_times

    runs = max(1, min(_PROFILE_RUNS, runs))
    try:
        times = layer_times(plan, run_options, feeds, runs)
    except EngineError as error:  # everything else was measured
        screen.warning(f"no profile of the layers: {error:brief}")
        return
    if options.has("dumpProfile"):
        print_profile(screen, times, runs)
    if path := options.path("exportProfile"):
        export_json(path, profile_rows(times, runs))


def _batch(profile: Profile) -> int | None:
    first = next(iter(profile.shapes.values()))
    return first[0] if first else None


def _feeds(plan: Plan, profile: Profile, options: Options, screen: Log) -> dict[str, Array]:
    """Values of the inputs: from files, else random.

    Raises:
        EngineError: a file is missing, of another size, or for no input.
    """
    rng = np.random.default_rng(0)
    unknown = options.inputs.keys() - {spec.name for spec in plan.inputs}
    if unknown:
        raise EngineError(
            f"--loadInputs: no input is called {', '.join(sorted(unknown))}",
            expected=", ".join(spec.name for spec in plan.inputs),
        )
    feeds = {}
    for spec in plan.inputs:
        shape = profile.shapes[spec.name]
        path = options.inputs.get(spec.name)
        if path is None:
            screen.info(f"Using random values for input {spec.name}")
            feeds[spec.name] = input_values(spec, shape, rng)
        else:
            screen.info(f"Using values loaded from {path} for input {spec.name}")
            feeds[spec.name] = _from_file(path, spec.dtype, shape)
        text = "x".join(map(str, shape))
        screen.info(f"Input binding for {spec.name} with dimensions {text} is created.")
    return feeds


def _from_file(path: Path, dtype: DType, shape: tuple[int, ...]) -> Array:
    expected = int(np.prod(shape)) * dtype.itemsize
    with os_errors(EngineError, "cannot be read", path):
        if path.stat().st_size != expected:
            raise EngineError(
                f"{path.stat().st_size} bytes",
                where=str(path),
                expected=f"{expected} bytes: raw {dtype.name} of {'x'.join(map(str, shape))}",
            )
        data = path.read_bytes()
    return np.frombuffer(data, dtype).reshape(shape).copy()
