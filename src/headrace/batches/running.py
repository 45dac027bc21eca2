"""A batch in one call, as `headrace batch` on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError
from headrace.batches.batch_run import BatchOptions, BatchReport, BatchRun
from headrace.batches.bucket import is_bucket
from headrace.batches.driver import BatchProgress
from headrace.batches.folder import KINDS
from headrace.batches.tables import TABLES
from headrace.batches.work import Work
from headrace.config import is_pipeline_file, load_pipeline
from headrace.config.overrides import GivenKey
from headrace.infer.run_options import RunOptions
from headrace.pipeline.opening import pipeline_spec

if TYPE_CHECKING:
    from headrace.config.enums import Generation
    from headrace.config.profile import Profile
    from headrace.custom.guard import GuardMode
    from headrace.infer.run_options import Abi, Palette


def batch(
    *configs: str | PathLike[str],
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    out: str | PathLike[str],
    tracker: str | None = None,
    outputs: Sequence[str] = (),
    split_s: float | None = None,
    workers: int | None = None,
    resume: bool = False,
    retry_failed: bool = False,
    retries: int = 1,
    on: str = "local",
    unit_timeout: float | None = None,
    max_failed: int | None = None,
    on_change: Callable[[BatchProgress], None] = lambda _: None,
    threads: int | None = None,
    streams: int | None = None,
    device: str = "auto",
    limit: int | None = None,
    abi: Abi | None = None,
    guard: GuardMode | None = None,
    guard_env: str | None = None,
    profile: Profile | None = None,
    generation: Generation | None = None,
    palette: Palette = "auto",
    rebuild: bool = False,
    conf: float | None = None,
    labels: str | PathLike[str] | None = None,
    **keys: Any,
) -> BatchReport:
    """Run models over many videos and images, and keep every result exactly once.

        report = headrace.batch("pgie.txt", inputs="archive/", out="results")

    Call it below `if __name__ == "__main__":`, since worker processes import the program anew.

    `threads` None shares the cores out among the workers. On Ray each actor has a GPU of its own
    with `device="cuda"`.

    Args:
        configs: nvinfer configs or bare models, primary ones first; or one pipeline file.
        inputs: files, folders, patterns, list files, manifests and URLs; see `expand_inputs`.
        out: folder of the results, or a URL: `s3://bucket/results/`.
        tracker: as `open_tracker` takes it; videos stay whole then.
        outputs: further outputs for each input: `jsonl`, `coco`, `video`.
        split_s: length in seconds of the spans that long videos are split into; 0 splits none, None
            is 60, or less where inputs are few.
        workers: processes; None is measured, at most one for each core.
        resume: do what is missing in a folder that has results of the same run.
        retry_failed: with `resume`: run units again that failed.
        retries: how often a failing unit is tried again before its error is kept.
        on: `local`, `ray`, or `ray://HOST:PORT`.
        unit_timeout: seconds that one attempt at a unit may take; its worker is ended then, and the
            unit tried again or failed. None is any time.
        max_failed: end the run with an error when more units have failed in it; None: never.
        on_change: called after results, with the counts.
        threads: CPU threads of each engine; None is one per core.
        streams: batches that each engine runs at once, sharing its threads; None is what it was
            tuned for, else one per thread, at most 4, and 1 for live sources.
        device: where engines run and videos are decoded: `auto` takes an NVIDIA GPU that is there
            and that the runtime can use; `cpu`, `cuda`, `cuda:N`.
        limit: frames of each source.
        abi: bytes per box of a C++ parser, `24` (DeepStream 5 to 8), `28` (9) or `auto`, which
            detects it; None takes each config's `custom-lib-abi`.
        guard: whether custom libraries run in worker processes, so that their crashes are survived:
            `auto` guards C++ libraries that are not trusted yet, `always` guards Python files, too,
            `never` guards none; None takes each config's `custom-lib-guard`.
        guard_env: variables of the environment, separated by commas, for libraries in worker
            processes: `NAME` passes what looks like a credential, `-NAME` holds another one back,
            `*` and `?` stand for letters; None takes each config's `custom-lib-guard-env`.
        profile: whose rules apply where the configs' keys leave them open: `nvinfer` for those of
            the original, `modern` for those that models are trained with; None takes each config's
            `profile`.
        generation: whose rules apply where releases of the original differ, `9.1` or `6.2`; a
            config without `gie-unique-id` is refused, as there. None: those of `9.1`, and the first
            free number.
        palette: box colours: `auto` gives each class its own where the config sets none, `config`
            takes exactly the config's; a `painter` has its own.
        rebuild: build engines even if valid ones are saved.
        conf: smallest confidence, 0 to 1, of the only config: sets the threshold that decides for
            its network type.
        labels: label file instead of the only config's.
        keys: keys that win over the only config's, with `_` for `-`, of `[class-attrs-all]` too; of
            a class: `**{"class-attrs-2.topk": 5}`. None leaves the config's. Paths are relative to
            the working directory. Of several configs, set them on each:
            `ModelConfig.load(path).with_overrides(conf=0.4)`.

    Raises:
        HeadraceError: a config, model or input is refused; the folder has other results. A unit
            that fails raises nothing: it is in the report and the manifest.
        MissingExtraError: pyarrow is not installed, or a package that an input or Ray needs.
    """
    run, settings = RunOptions.of(batch, locals())
    names = [inputs] if isinstance(inputs, str | PathLike) else inputs
    destination = fspath(out).removeprefix("file://")
    return batch_run(
        [fspath(config) for config in configs],
        [fspath(name) for name in names],
        destination if is_bucket(destination) else Path(destination),
        tracker=tracker,
        settings=settings,
        kinds=_kinds(outputs),
        run=run,
        options=BatchOptions(
            workers=workers,
            split_s=split_s,
            resume=resume,
            retry_failed=retry_failed,
            retries=retries,
            on=on,
            unit_timeout=unit_timeout,
            max_failed=max_failed,
        ),
    ).run(on_change)


def batch_run(
    configs: Sequence[str],
    inputs: Sequence[str],
    out: Path | str,
    *,
    tracker: str | None,
    settings: Sequence[GivenKey],
    kinds: tuple[str, ...],
    run: RunOptions,
    options: BatchOptions,
) -> BatchRun:
    """Put a batch together from its words.

    Args:
        configs: nvinfer configs or bare models; or one pipeline file.
        inputs: see `expand_inputs`; none are those of the pipeline file.
        out: folder of the results, or a URL.
        tracker: as `open_tracker` takes it.
        settings: keys set over the configs.
        kinds: outputs of each unit.
        run, options: how models and the batch run.

    Raises:
        HeadraceError: a config is refused, or there is no input.
    """
    base = None
    if len(configs) == 1 and Path(configs[0]).is_file() and is_pipeline_file(configs[0]):
        base = load_pipeline(configs[0], generation=run.generation)
        inputs = inputs or [source.uri for source in base.sources]
    spec = pipeline_spec(
        base, configs=None if base else configs, sources=["a unit's"], tracker=tracker
    )
    work = Work(spec.with_models_overridden(settings), run, kinds)
    return BatchRun(work, inputs, out, options)


def _kinds(outputs: Sequence[str]) -> tuple[str, ...]:
    """The outputs of each unit: its tables, and those asked for.

    Raises:
        HeadraceError: there is no such output.
    """
    kinds = (*TABLES, *(kind for kind in KINDS if kind in outputs and kind not in TABLES))
    others = [kind for kind in KINDS if kind not in TABLES]
    strange = [kind for kind in outputs if kind not in KINDS]
    if isinstance(outputs, str) or strange:
        raise HeadraceError(
            f"{outputs!r} are no outputs of a batch",
            where="headrace.batch(outputs=…)",
            expected=f"a list with any of {', '.join(others)}",
        )
    return kinds
