"""The child process that tries tactics: a crash here ends no other process.

Messages in both directions: a JSON object and arrays, see `send`. The first one brings the models
and the inputs; each later one asks for one thing and is answered by one message.
"""

from __future__ import annotations

import io
import json
import os
import select
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from time import monotonic, perf_counter, process_time
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from headrace._core.gpu.cuda import current_gpu
from headrace._core.gpu.visible_gpus import environment_for
from headrace._core.processes import ProcessEnd, die_with_parent, start_module
from headrace._core.text import error_text
from headrace._core.threads import run_together, start_thread
from headrace._core.types import Array

if TYPE_CHECKING:
    from headrace._core.processes import ModuleProcess
    from headrace.engine.backends.protocol import Runner


SIZES = struct.Struct("<QQQ")
Arrays: TypeAlias = "Mapping[str, Array]"


def send(
    pipe: IO[bytes],
    message: Mapping[str, object],
    arrays: Arrays | None = None,
    raw: Sequence[bytes] = (),
) -> None:
    """Write one message: sizes, JSON, arrays, other bytes one after the other."""
    text = json.dumps(message).encode()
    packed = io.BytesIO()
    if arrays:
        # names may be anything, also what no archive would take
        np.savez(packed, allow_pickle=False, **{f"a{i}": a for i, a in enumerate(arrays.values())})
        text = json.dumps({**message, "names": list(arrays)}).encode()
    data = packed.getbuffer()
    pipe.write(SIZES.pack(len(text), len(data), sum(map(len, raw))))
    pipe.write(text)
    pipe.write(data)
    for part in raw:
        pipe.write(part)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[dict[str, Any], dict[str, Array], bytes]:
    """Read one message.

    Raises:
        EOFError: the other side has closed.
    """
    head = pipe.read(SIZES.size)
    if len(head) < SIZES.size:
        raise EOFError
    text, data, raw = SIZES.unpack(head)
    message = json.loads(_read(pipe, text))
    arrays = {}
    if packed := _read(pipe, data):
        with np.load(io.BytesIO(packed), allow_pickle=False) as file:
            arrays = {name: file[f"a{i}"] for i, name in enumerate(message.pop("names"))}
    return message, arrays, _read(pipe, raw)


def _read(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


class _Bench:
    """Runners by tactic, over one model and one batch of inputs."""

    def __init__(self, models: Sequence[bytes], feeds: Arrays, max_batch: int) -> None:
        self._models, self._feeds, self._max_batch = models, feeds, max_batch
        self._runners: dict[tuple[int, str], Runner] = {}

    def answer(self, asked: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
        from headrace.engine.backends import get_backend
        from headrace.engine.tactic import Tactic

        key = (asked.get("model", 0), asked["tactic"])
        if asked["do"] == "drop":
            self._runners.pop(key).close()
            return {}, {}
        answer: dict[str, Any] = {}
        outputs: Arrays = {}
        tactic = Tactic.parse(asked["tactic"])
        if key not in self._runners:
            backend = get_backend(tactic.runtime)
            start = perf_counter()
            self._runners[key] = backend.open(
                self._models[key[0]],
                tactic.run_options(self._max_batch, asked.get("precision", "fp32")),
            )
            answer = {"load_s": perf_counter() - start}
            if not asked.get("outputs"):
                self._runners[key].run(self._feeds)  # the first run is never like the others
        runner = self._runners[key]
        if asked.get("outputs"):
            arrays = runner.run(self._feeds)
            outputs = {s.name: np.asarray(a) for s, a in zip(runner.outputs, arrays, strict=True)}
        if asked.get("window_s") is not None:
            spent = process_time()
            times = measure(
                lambda: runner.run(self._feeds),
                streams=tactic.streams or 1,
                window_s=asked["window_s"],
                at_least=asked["at_least"],
            )
            answer["latency_ms"] = float(np.median(np.concatenate(times))) * 1e3
            runs = sum(map(len, times))
            answer["cpu_ms"] = (process_time() - spent) * 1e3 / runs
            answer["runs_per_s"] = sum(len(mine) / sum(mine) for mine in times)
        return answer, outputs


def main() -> None:
    """Answer until the parent closes the pipe."""
    die_with_parent(int(sys.argv[1]))  # it may hang in a runtime
    # what runtimes print to standard output must not get between the messages
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests = sys.stdin.buffer
    first, feeds, raw = receive(requests)
    ends = list(accumulate(first["models"]))
    models = [raw[end - size : end] for size, end in zip(first["models"], ends, strict=True)]
    del raw
    sys.path[:] = first["path"]
    from headrace._core.errors import HeadraceError
    from headrace.engine.backends import BACKENDS

    BACKENDS.update(first["backends"])
    bench = _Bench(models, feeds, first["max_batch"])
    with suppress(EOFError, BrokenPipeError):
        while True:
            asked, _, _ = receive(requests)
            try:
                answer, outputs = bench.answer(asked)
            except HeadraceError as error:
                send(answers, {"error": f"{error:line}"})
            except (MemoryError, RuntimeError, ValueError, TypeError) as error:
                send(answers, {"error": error_text(error)})
            else:
                send(answers, answer, outputs)


def measure(
    run: Callable[[], object], *, streams: int, window_s: float, at_least: int
) -> list[list[float]]:
    """Time calls of `run`.

    Each of `streams` threads goes on for `window_s`, and makes `at_least` calls in any case. An
    exception of `run` ends the measurement.

    Returns:
        Seconds of each call, by thread. The threads' rates add up to the throughput, so that it
        does not matter which one ends last.
    """
    times: list[list[float]] = [[] for _ in range(streams)]
    together = threading.Barrier(streams)

    def work(number: int) -> None:
        mine = times[number]
        together.wait()
        begun = now = perf_counter()
        while len(mine) < at_least or now - begun < window_s:
            run()
            after = perf_counter()
            mine.append(after - now)
            now = after

    run_together(work, together, name="headrace-tune")
    return times


if __name__ == "__main__":
    main()


class CrashedError(Exception):
    """The process ended by itself; the text has its end."""


class HungError(Exception):
    """No answer in time; the process was killed."""


class RefusedError(Exception):
    """The runtime raised an error; the text is its."""


class TuningWorker:
    """Starts the process when it is needed, and anew after it died; for the thread's GPU."""

    def __init__(self, models: Sequence[bytes], feeds: Mapping[str, Array], max_batch: int) -> None:
        self._models, self._feeds, self._max_batch = models, feeds, max_batch
        self._process: ModuleProcess | None = None
        self._environment = environment_for(current_gpu())
        self._environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))

    @property
    def pid(self) -> int | None:
        """Number of the process; None if there is none."""
        return None if self._process is None else self._process.pid

    def ask(self, timeout_s: float, **request: object) -> tuple[dict[str, Any], Arrays]:
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
            raise RefusedError(str(answer["error"]))
        return answer, arrays

    def _started(self) -> ModuleProcess:
        if self._process is not None:
            return self._process
        return start_module(
            "headrace.engine.tuning.worker",
            str(os.getpid()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
        )

    def _greet(self, process: ModuleProcess, deadline: float) -> None:
        from headrace.engine.backends import BACKENDS

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
        failed: list[BaseException] = []
        writer = start_thread(
            lambda: send(pipe, hello, self._feeds, self._models),
            name="headrace-tune-models",
            failed=failed.append,
        )
        writer.join(max(0.0, deadline - monotonic()))
        if writer.is_alive():
            raise HungError
        if failed:
            raise failed[0]

    def _read_message(self, process: ModuleProcess, deadline: float) -> bytes:
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        data = bytearray()
        length = SIZES.size
        poll = select.poll()
        poll.register(pipe, select.POLLIN | select.POLLHUP)
        while len(data) < length:
            if not poll.poll(max(0.0, deadline - monotonic()) * 1e3):
                raise HungError
            part = os.read(pipe, min(1 << 20, length - len(data)))
            if not part:
                raise EOFError
            data += part
            if length == SIZES.size == len(data):
                length += sum(SIZES.unpack(data))
        return bytes(data)

    def _how_it_ended(self) -> str:
        process = self._process
        assert process is not None
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        end = ProcessEnd(process.returncode)
        self.stop()
        return str(end)

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
