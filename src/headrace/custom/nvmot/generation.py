"""For which release a low-level tracker library was compiled: by evidence, then by trial."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headrace._core.errors import HeadraceError
from headrace._core.findings import Finding, Level
from headrace.binary.elf import ElfFile
from headrace.custom.guard.answers import TrialAnswer
from headrace.custom.guard.options import GuardOptions
from headrace.custom.guard.process import GuardedProcess
from headrace.custom.load_errors import check_header
from headrace.custom.nvmot.structures import GENERATIONS, generation_of

_FOLDER = re.compile(rb"deepstream-(\d{1,2}\.\d)")
_OPERATIONS = "headrace.custom.nvmot.operations"


def possible(path: Path) -> tuple[Sequence[str], str]:
    """Generations that a library may be of, the likeliest first, and why.

    Raises:
        CustomLibraryError: it is no library of this machine.
    """
    elf = check_header(path)
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
    """
    candidates, why = possible(path)
    generation, sure = candidates[0], len(candidates) == 1
    if not sure and options is not None:
        results: dict[str, bool | None] = {}
        for g in candidates:
            results[g] = _try(path, payload, g, options)
            if results[g]:
                break
        good = [g for g, sound in results.items() if sound]
        quiet = [g for g, sound in results.items() if sound is None]
        if good:
            generation, sure, why = good[0], True, "with its structures two boxes come back as sent"
        elif quiet:
            generation, why = quiet[0], "nothing that it did in trials speaks against it"
    level: Level = "info" if sure else "warning"
    text = "it is called as of generation {generation}: {why}"
    if not sure:
        text += "; that is a guess, generation=… says which it is"
    data = {"generation": generation, "why": why}
    return generation, Finding("tracker-generation", level, text, str(path), data)


def _try(
    path: Path, payload: dict[str, Any], generation: str, options: GuardOptions
) -> bool | None:
    """Whether a library makes sense of a generation; None if it only reports nothing."""
    process = GuardedProcess(f"{path} (trial)", options)
    try:
        answer, _ = process.invoke(
            f"{_OPERATIONS}:try_generation",
            {**payload, "generation": generation},
            what=f"{path}: trial as of {generation}",
            answer=TrialAnswer,
        )
    except HeadraceError:
        return False
    finally:
        process.close()
    sound: bool | None = answer.sound
    return sound
