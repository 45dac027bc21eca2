"""Names of the engine files beside a model.

    <model>_b<batch>_gpu<gpu>_<precision>.engine            as nvinfer names it
    <model>_b<batch>_gpu<gpu>_<precision>_<key>.engine      of the same model for another config
    <model>_b<batch>_cpu_<precision>.engine                 if a foreign file has the first name

`key` is eight hexadecimal digits of a hash of the engine's content: the values of the config beside
model, batch, GPU and precision, and for an engine that gave up its place to one that is run another
way also its own way. The search reads all engines of a model: the key only keeps them apart.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from headrace._core.errors import EngineError
from headrace._core.files import sha256_of
from headrace.engine.plan import is_plan_file, read_header
from headrace.engine.plan_header import PlanHeader
from headrace.infer.model.requirement import plan_content

_KEYED = re.compile(r"_[0-9a-f]{8}$")


def engine_path(model: Path, batch: int, gpu_id: int, precision: str) -> Path:
    """Name the file of a built engine, beside its model. Source: config facts 5.2."""
    return model.with_name(f"{model.name}_b{batch}_gpu{gpu_id}_{precision}.engine")


def path_beside_foreign(model: Path, batch: int, precision: str) -> Path:
    """Name the file of a built engine where a foreign file has the usual name."""
    return model.with_name(f"{model.name}_b{batch}_cpu_{precision}.engine")


def keyed(usual: Path, content: Sequence[str]) -> Path:
    """Name the file beside `usual` for an engine of this content."""
    key = sha256_of(json.dumps(list(content)).encode())[:8]
    return usual.with_name(f"{_KEYED.sub('', usual.stem)}_{key}{usual.suffix}")


def siblings(usual: Path) -> list[Path]:
    """List engines with keys beside `usual`, by name; only those that headrace wrote."""
    pattern = f"{glob.escape(usual.stem)}_????????{glob.escape(usual.suffix)}"
    names = sorted(glob.glob(pattern, root_dir=usual.parent))
    paths = [usual.with_name(name) for name in names if _KEYED.search(Path(name).stem)]
    return [path for path in paths if is_plan_file(path)]


def _way(header: PlanHeader) -> list[str]:
    chosen = next((str(t.tactic) for t in header.tactics if t.chosen), "")
    objective = header.tuning.objective if header.tuning else ""
    return [header.runtime.name, chosen, objective]


def set_aside(path: Path) -> Path | None:
    """Rename the engine at `path`, for another to take its place; None if that fails.

    For the holder of the lock of `path`.
    """
    try:
        header = read_header(path)
        target = keyed(path, [*plan_content(header), *_way(header)])
        if target.exists() and not is_plan_file(target):
            return None
        os.replace(path, target)
    except (OSError, EngineError):
        return None
    return target


def exchange(path: Path, home: Path) -> Path:
    """Move the engine at `path` to `home`, setting aside the one there; return its new path.

    For the holder of the lock of `home`.
    """
    if home.exists() and set_aside(home) is None:
        return path
    with suppress(OSError):
        os.replace(path, home)
        return home
    return path
