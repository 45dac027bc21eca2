"""NVIDIA's Multi-Process Service: kernels of several processes run at the same time on one GPU.

Without it the processes take turns, and each turn waits for the one before. The service comes with
the driver. Source: NVIDIA's page on MPS, and `nvidia-cuda-mps-control --help`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headrace._core.findings import Finding

_CONTROL = "nvidia-cuda-mps-control"
_PLACES = ("/usr/bin", "/usr/local/nvidia/bin")  # beside PATH
_PIPES = "CUDA_MPS_PIPE_DIRECTORY"
_LOGS = "CUDA_MPS_LOG_DIRECTORY"
_SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"  # of the GPU's multiprocessors, for each process
_DRIVER = Path("/dev/nvidiactl")  # there wherever the driver of a GPU is
_USUAL = "/tmp/nvidia-mps"  # where a daemon listens that was started without a folder
_WAIT_S = 20.0


@contextmanager
def kernels_at_once(processes: int) -> Iterator[list[Finding]]:
    """Let processes that start inside share a GPU at the same time.

    A daemon that runs already is used, and left alone. Otherwise one starts here, in a folder of
    its own, and ends behind the block. A process may use twice its share of the GPU then, unless
    the environment says otherwise: on an H200 HEVC videos ran at 7,267 frames a second for 7,155 in
    four processes, and a cascade at 7,051 for 6,875 in six.

    Args:
        processes: how many share it.

    Yields:
        A notice where the processes must take turns, with the reason; none where they need not, or
        where there is no GPU.
    """
    daemon = Path(os.environ.get(_PIPES) or _USUAL) / "control"
    if not driver_is_there() or daemon.exists():
        yield []
        return
    program = control_program()
    if program is None:
        yield [_turns(f"{_CONTROL} is not there")]
        return
    with tempfile.TemporaryDirectory(prefix="headrace-mps-", ignore_cleanup_errors=True) as folder:
        share = os.environ.get(_SHARE) or str(max(1, min(100, 200 // processes)))
        changed = {_PIPES: folder, _LOGS: folder, _SHARE: share}
        before = {name: os.environ.get(name) for name in changed}
        why = _asked(program, "-d", environment={**os.environ, **changed})
        if why is not None:
            yield [_turns(why)]
            return
        os.environ.update(changed)  # for the processes, which start with these
        try:
            yield []
        finally:
            _asked(program, environment=dict(os.environ), words="quit\n")
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def driver_is_there() -> bool:
    """Return whether the driver of a GPU is loaded; it is not opened for that."""
    return _DRIVER.exists()


def control_program() -> str | None:
    """Find the program that starts the service; None where the driver came without it."""
    return shutil.which(_CONTROL, path=os.pathsep.join((os.environ.get("PATH", ""), *_PLACES)))


def _turns(why: str) -> Finding:
    return Finding(
        "gpu-turns",
        "info",
        f"the processes take turns on the GPU ({why}); with NVIDIA's MPS they would share it",
    )


def _asked(
    program: str, *arguments: str, environment: dict[str, str], words: str = ""
) -> str | None:
    """Run the control program; why it failed, or None."""
    try:
        done = subprocess.run(
            [program, *arguments], env=environment, input=words, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=_WAIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{_CONTROL}: {error}"
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return f"{_CONTROL}: {said[-1] if said else f'exit status {done.returncode}'}"
    return None
