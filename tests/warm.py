"""`headrace …` in processes that need not import it first: they are forked off one that has.

Each is a process of its own, with its arguments, folder, environment, output and exit code; its
threads, its functions at exit and its outputs end as those of any other. Not shown are its start
and how Python takes its modules apart, which costs more than most commands; commands that are
started from nothing are those of tests/cli/test_demo.py and the tests of signals, encodings and
closed outputs.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

# Not the runtimes: they start threads, which a fork does not have.
MODULES = [
    "av",
    "mimetypes",
    "numpy.ma",
    "onnx",
    "PIL.Image",
    "PIL.JpegImagePlugin",
    "PIL.PngImagePlugin",
    "rich.table",
    "tomllib",
    "yaml",
    "headrace._wiring",
    "headrace.cli.build",
    "headrace.cli.eval",
    "headrace.cli.lint",
    "headrace.cli.output",
    "headrace.cli.run",
    "headrace.cli.show",
    "headrace.cli.show_config",
    "headrace.config.app.reader",
    "headrace.config.yaml_nodes",
    "headrace.custom.guard",
    "headrace.custom.guard.process",
    "headrace.custom.in_process",
    "headrace.custom.inspect",
    "headrace.custom.library",
    "headrace.custom.python_library",
    "headrace.diagnose.lint.linting",
    "headrace.diagnose.lint.text",
    "headrace.diagnose.lint.dry_run",
    "headrace.engine.builder",
    "headrace.engine.session",
    "headrace.infer.model.engine_building",
    "headrace.infer.model.inspect_engine",
    "headrace.infer.model.planning",
    "headrace.infer.model.settled_outputs",
    "headrace.media.draw.painter",
    "headrace.media.sinks.jsonl",
    "headrace.media.sinks.video",
    "headrace.network.ir",
    "headrace.network.onnx_file",
    "headrace.network.prior_boxes",
    "headrace.network.shapes.model_shapes",
    "headrace.pipeline.assembly",
    "headrace.pipeline.notice_follower",
    "headrace.pipeline.opening",
    "headrace.pipeline.track.open",
    "headrace.plugins.standard.batched_nms",
    "headrace.plugins.standard.data_movement",
    "headrace.plugins.standard.deformable",
    "headrace.plugins.standard.efficient_nms",
    "headrace.plugins.standard.elementwise",
    "headrace.plugins.standard.pillars",
    "headrace.plugins.standard.priors",
    "headrace.plugins.standard.proposals",
    "headrace.plugins.standard.roi",
]


def headrace(
    *args: object, cwd: Path | None = None, timeout: float = 120, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run `headrace ARGS`; `env` comes on top of the test's environment.

    Raises:
        subprocess.TimeoutExpired: it was killed after `timeout` seconds.
    """
    assert not any(name.startswith(("PYTHON", "LD_")) for name in env), "read at the start only"
    server = _server()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        here = f"/proc/{os.getpid()}/fd"
        words = [os.fsdecode(a) if isinstance(a, bytes) else str(a) for a in args]
        order = {
            "args": words,
            "cwd": str(cwd or Path.cwd()),
            "env": {**os.environ, **env},
            "out": [f"{here}/{out.fileno()}", f"{here}/{err.fileno()}"],
        }
        _tell(server, json.dumps(order).encode() + b"\n")
        pid = _answer(server, 120)  # the server imports much before the first answer
        try:
            code = _answer(server, timeout)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            _answer(server, 60)
            raise subprocess.TimeoutExpired(["headrace", *words], timeout) from None
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(["headrace", *words], code, *texts)


def started_anew(*args: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `headrace ARGS` as anybody does."""
    return subprocess.run(
        [sys.executable, "-m", "headrace", *map(str, args)],
        cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@cache
def _server() -> subprocess.Popen[bytes]:
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.warm"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # `select` sees no buffer
        cwd=Path(__file__).parents[1],
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.close()
    server.wait(timeout=10)
    server.stdout.close()


def _tell(server: subprocess.Popen[bytes], line: bytes) -> None:
    assert server.stdin is not None
    while line:
        line = line[server.stdin.write(line) :]


def _answer(server: subprocess.Popen[bytes], timeout: float) -> int:
    assert server.stdout is not None
    if not select.select([server.stdout], [], [], timeout)[0]:
        raise TimeoutError
    return int(server.stdout.readline())


def _serve() -> None:
    """Returns in each process that is to run a command, and at the end."""
    codes: list[int] = []
    atexit.register(_leave, codes)  # the first one is called last
    for name in MODULES:
        __import__(name)
    gc.freeze()
    while line := sys.stdin.buffer.readline():
        order = json.loads(line)
        if (pid := _forked()) == 0:
            for number, path in enumerate([os.devnull, *order["out"]]):
                file = os.open(path, os.O_WRONLY | os.O_APPEND if number else os.O_RDONLY)
                os.dup2(file, number)
                os.close(file)
            os.chdir(order["cwd"])
            os.environ.clear()
            os.environ.update(order["env"])
            sys.path[0] = order["cwd"]
            sys.argv = ["headrace", *order["args"]]
            try:
                runpy.run_module("headrace", run_name="__main__", alter_sys=True)
            except SystemExit as end:
                codes.append(end.code if isinstance(end.code, int) else bool(end.code))
                raise
            return
        os.write(1, b"%d\n" % pid)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _leave(codes: list[int]) -> None:
    """Leave before modules are taken apart, which would copy all memory that the fork shares.

    Python ends the process itself where an exception ended the command or an output is closed.
    """
    if codes:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
            ctypes.CDLL(None).fflush(None)
            os._exit(codes[0] & 0xFF)


def _forked() -> int:
    with warnings.catch_warnings():
        # NumPy's threads wait for work, and its library begins anew after a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


if __name__ == "__main__":
    _serve()
