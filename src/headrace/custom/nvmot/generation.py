"""For which release a low-level tracker library was compiled: by evidence, then by trial."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from headrace._core.errors import CustomLibraryError, HeadraceError
from headrace._core.findings import Finding, Level
from headrace.binary.elf import ElfFile
from headrace.custom.guard.answers import TrackerAnswer, TrialAnswer
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.process import GuardedProcess
from headrace.custom.nvmot.host import tracker_elf
from headrace.custom.nvmot.structures import GENERATIONS, generation_of

_FOLDER = re.compile(rb"deepstream-(\d{1,2}\.\d)")
_OPERATIONS = "headrace.custom.nvmot.operations"


def possible(path: Path) -> tuple[Sequence[str], str]:
    """Generations that a library may be of, the likeliest first, and why.

    Raises:
        CustomLibraryError: it is no library of this machine, or lacks a function.
    """
    elf = tracker_elf(path)
    named = {generation_of(found.decode()) for found in _FOLDER.findall(path.read_bytes())}
    fitting = [g for g in reversed(GENERATIONS) if _may_be(elf, g)]
    if len(named) == 1 and (one := named.pop()) in fitting:
        return [one], f"it names the folder of a release of the generation {one}"
    names = [n for n in ("NvMOT_UpdateParams", "NvMOT_RetrieveMiscData", "NvMOT_ProcessPast")
             if n in elf.functions()]  # fmt: skip
    return fitting, f"it exports {names[0]}" if names else "its functions are those of all"


def _may_be(elf: ElfFile, generation: str) -> bool:
    functions = elf.functions()
    if "NvMOT_UpdateParams" in functions:
        return generation >= "8.0"
    if "NvMOT_RetrieveMiscData" in functions:
        return generation >= "6.3"
    return "NvMOT_ProcessPast" not in functions or generation < "6.3"


def choose(
    path: Path, payload: dict[str, Any], options: GuardOptions | None
) -> tuple[str, Finding]:
    """Choose the generation of a library; the finding is a warning where that is a guess.

    Args:
        path: the library.
        payload: as for `operations.open_context`, but for the generation.
        options: of the worker of each trial; None tries nothing.

    Raises:
        CustomLibraryError: it is no tracker library of this machine, or cannot be driven: it has
            no context or says nothing about itself, and two boxes that stand still get no ids.
    """
    candidates, why = possible(path)
    generation, sure = candidates[0], len(candidates) == 1
    trials: dict[str, _Trial] = {}
    for g in candidates:
        if options is None:
            break
        trials[g] = _try(path, payload, g, options, wholly=not sure)
        if trials[g].sound:
            break
    good = [g for g, trial in trials.items() if trial.sound]
    quiet = [g for g, trial in trials.items() if trial.sound is None and not trial.lacking]
    if not good and not quiet:
        _refuse_undriven(path, list(trials.values()))
    if good and not sure:
        generation, sure, why = good[0], True, "with its structures two boxes come back as sent"
    elif quiet and not sure:
        generation, why = quiet[0], "nothing that it did in trials speaks against it"
    level: Level = "info" if sure else "warning"
    text = "it is called as of generation {generation}: {why}"
    if not sure:
        text += "; that is a guess, generation=… says which it is"
    data = {"generation": generation, "why": why}
    return generation, Finding("tracker-generation", level, text, str(path), data)


def _refuse_undriven(path: Path, trials: Sequence[_Trial]) -> None:
    """Refuse a library that lacks something wherever it starts, or lacks it and stays quiet.

    One that fails with a frame only, as a generation with other structures has it, is not refused.
    """
    lacking = [trial for trial in trials if trial.lacking]
    mute = [trial for trial in lacking if trial.sound is None]
    if mute or (lacking and len(lacking) == sum(t.lacking is not None for t in trials)):
        raise CustomLibraryError(
            f"{(mute or lacking)[0].lacking}, and in trials two boxes that stand still get no ids",
            where=str(path),
            expected="an NvMOT_Query that fills computeConfig and batchMode, and an NvMOT_Init "
            "that sets the context",
        )


class _Trial(NamedTuple):
    sound: bool | None  # None if it only reports nothing
    lacking: str | None  # see `NvmotHost.lacking`; None if it does not start


def _try(
    path: Path, payload: dict[str, Any], generation: str, options: GuardOptions, *, wholly: bool
) -> _Trial:
    """Whether a library makes sense of a generation; frames only if `wholly`, or if it lacks."""
    process = GuardedProcess(f"{path} (trial)", options)
    asked = {**payload, "generation": generation}
    what = f"{path}: trial as of {generation}"
    lacking = None
    try:
        opened, _ = process.invoke(
            f"{_OPERATIONS}:open_context", asked, what=what, answer=TrackerAnswer
        )
        lacking = opened.lacking
        if not wholly and not lacking:
            return _Trial(None, lacking)
        answer, _ = process.invoke(
            f"{_OPERATIONS}:try_generation", asked, what=what, answer=TrialAnswer
        )
        return _Trial(answer.sound, lacking)
    except HeadraceError:
        return _Trial(False, lacking)
    finally:
        process.close()
