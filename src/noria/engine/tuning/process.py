"""The parent's side of the process in which tactics are tried."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import numpy.typing as npt

from noria.engine.tuning.worker import SIZES, receive, send

Arrays = dict[str, npt.NDArray[Any]]


class CrashedError(Exception):
    """The process ended by itself; the text has its end."""


class HungError(Exception):
    """No answer in time; the process was killed."""


class RefusedError(Exception):
    """The runtime raised an error; the text is its."""


class TuningWorker:
    """Starts the process when it is needed, and anew after it died."""

    def __init__(
        self, models: Sequence[bytes], feeds: Mapping[str, npt.NDArray[Any]], max_batch: int
    ) -> None:
        self._models, self._feeds, self._max_batch = models, feeds, max_batch
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, timeout_s: float, **request: Any) -> tuple[dict[str, Any], Arrays]:
        """One request and its answer, see `tune_worker`.

        Raises:
            CrashedError, HungError: the process is gone, with the models it had loaded.
            RefusedError: the runtime raised an error.
        """
        deadline = monotonic() + timeout_s
        process = self._started()
        try:
            if self._process is None:
                self._process = process
                self._greet(process, deadline)
            assert process.stdin is not None
            send(process.stdin, request)
            answer, arrays, _ = receive(io.BytesIO(self._read_message(process, deadline)))
        except (EOFError, BrokenPipeError) as error:
            raise CrashedError(self._how_it_ended()) from error
        except BaseException:
            self.stop()
            raise
        if "error" in answer:
            at = f"{answer['where']}: " if answer.get("where") else ""
            raise RefusedError(f"{at}{answer['error']}")
        return answer, arrays

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            return self._process
        return subprocess.Popen(
            [sys.executable, "-m", "noria.engine.tuning.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def _greet(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        from noria.engine.backends import BACKENDS

        hello = {
            "path": sys.path,
            "backends": BACKENDS,
            "max_batch": self._max_batch,
            "models": [len(model) for model in self._models],
        }
        pipe = process.stdin
        assert pipe is not None
        # A model is larger than a pipe: written by a thread, so that a child that does not read is
        # given up in time (killing it makes the thread end).
        failed: list[Exception] = []

        def write() -> None:
            try:
                send(pipe, hello, self._feeds, self._models)
            except Exception as error:
                failed.append(error)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        writer.join(max(0.0, deadline - monotonic()))
        if writer.is_alive():
            raise HungError
        if failed:
            raise failed[0]

    def _read_message(self, process: subprocess.Popen[bytes], deadline: float) -> bytes:
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        data = bytearray()
        wanted = SIZES.size
        poll = select.poll()
        poll.register(pipe, select.POLLIN | select.POLLHUP)
        while len(data) < wanted:
            if not poll.poll(max(0.0, deadline - monotonic()) * 1e3):
                raise HungError
            part = os.read(pipe, min(1 << 20, wanted - len(data)))
            if not part:
                raise EOFError
            data += part
            if wanted == SIZES.size == len(data):
                wanted += sum(SIZES.unpack(data))
        return bytes(data)

    def _how_it_ended(self) -> str:
        process = self._process
        assert process is not None
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        code = process.returncode
        self.stop()
        if code is not None and code < 0:
            with suppress(ValueError):
                return f"killed by {signal.Signals(-code).name}"
        return f"ended with exit status {code}"

    def stop(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def __enter__(self) -> TuningWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
