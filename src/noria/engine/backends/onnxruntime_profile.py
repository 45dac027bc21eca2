"""ONNX Runtime's own profile of a model: the time of each node it runs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnxruntime as ort

from noria.engine.backends import RunOptions
from noria.engine.backends.onnxruntime_common import session_options, worded

_SUFFIX = "_kernel_time"


def profile_nodes(
    model: bytes, options: RunOptions, feeds: Mapping[str, Any], runs: int
) -> list[tuple[str, list[float]]]:
    """Nodes in the order they run, each with its milliseconds of every run.

    Raises:
        EngineError: the runtime refuses the model, or fails.
    """
    with tempfile.TemporaryDirectory(prefix="noria-profile-") as folder:
        settings = session_options(options)
        settings.enable_profiling = True
        settings.profile_file_prefix = str(Path(folder) / "profile")
        try:
            session = ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
            for _ in range(runs + 1):  # the first run is never like the others
                session.run(None, dict(feeds))
            events = json.loads(Path(session.end_profiling()).read_text())
        except Exception as error:  # the binding's exception types share no base of their own
            raise worded(error, "failed") from error
    times: dict[str, list[float]] = {}
    for event in events:
        name = event.get("name", "")
        if event.get("cat") == "Node" and name.endswith(_SUFFIX):
            operator = event.get("args", {}).get("op_name", "")
            own = name[: -len(_SUFFIX)]
            key = f"{own} ({operator})" if operator and operator not in own else own
            times.setdefault(key, []).append(event["dur"] / 1e3)
    # a node inside a loop runs more often than the model does
    return [(name, _by_run(ms, runs + 1)[1:]) for name, ms in times.items()]


def _by_run(times: list[float], runs: int) -> list[float]:
    if len(times) % runs:
        return [sum(times) / runs] * runs
    each = len(times) // runs
    return [sum(times[i * each : (i + 1) * each]) for i in range(runs)]
