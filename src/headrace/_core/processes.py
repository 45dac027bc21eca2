"""Child processes: how they start, end with their parent, and how they ended.

Workers of guarded libraries are forked from an interpreter of their own (`headrace.custom.guard`),
share memory with the application, and have no rights.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import HeadraceError

if TYPE_CHECKING:
    import subprocess

    ModuleProcess = subprocess.Popen[bytes]

_PR_SET_PDEATHSIG = 1


# No plain record: the command imports this before it can name a damaged msgspec.
@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a process ended; as text it follows a name: `was killed by SIGSEGV`.

    Attributes:
        code: exit status, negative for the number of a signal; None if it is not known.
    """

    code: int | None

    @property
    def signal(self) -> str:
        """The signal that killed it; empty if none did."""
        return signal_name(-self.code) if self.code is not None and self.code < 0 else ""

    def __str__(self) -> str:
        if self.code is None:
            return "ended without an exit status"
        if self.signal:
            return f"was killed by {self.signal}"
        return f"ended with exit status {self.code}"


def signal_name(number: int) -> str:
    """`SIGKILL`, or `signal 40` for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, also in the midst of native code.

    The kernel looks at the thread that started it: that one has to live as long as the work.

    Args:
        parent: its process id; if it has ended already, so does this process.
    """
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def module_command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module with this interpreter, without the working directory."""
    return [sys.executable, "-P", "-m", module, *arguments]


def start_module(module: str, *arguments: str, **how: Any) -> ModuleProcess:
    """Start a module as a process of its own; `how` are arguments of `Popen`."""
    import subprocess

    return subprocess.Popen(module_command(module, *arguments), **how)


def start_program(command: list[str], **how: Any) -> ModuleProcess:
    """Start a program that is no module of ours; `how` are arguments of `Popen`."""
    import subprocess

    return subprocess.Popen(command, **how)


class SpawnedProcess:
    """A function that runs in a process of its own, with a pipe to it; it ends with this one.

    Nothing of this process is there: on Linux it is forked from a warm interpreter, see
    `fork_server`, elsewhere spawned.

    Args:
        function: called there with its end of the pipe and `arguments`; all can be pickled.
        name: of the process.
        ignored: signals that are for this process alone; SIGTERM otherwise ends the other.
        ahead: modules that its function needs, imported once for all such processes: none starts
            a thread or opens a GPU.

    Attributes:
        pipe: objects go both ways; its end is that of the process.
        process: a `multiprocessing.Process`.

    Raises:
        HeadraceError: it cannot be started.
    """

    def __init__(
        self,
        function: Callable[..., None],
        *arguments: Any,
        name: str,
        ignored: Collection[int] = (signal.SIGINT,),
        ahead: Collection[str] = (),
    ) -> None:
        from multiprocessing import Pipe, get_start_method, set_start_method

        usual = get_start_method(allow_none=True)
        self.pipe, theirs = Pipe()
        self.process = _started(name, (ignored, function, theirs, *arguments), ahead)
        if usual is None:  # starting one chooses it for the program, whose choice that is
            set_start_method(None, force=True)
        theirs.close()

    @property
    def stopped(self) -> bool:
        """True while SIGSTOP holds it: then it answers nothing, SIGTERM neither."""
        with suppress(OSError, IndexError):
            text = Path(f"/proc/{self.process.pid}/stat").read_text()
            return text.rpartition(")")[2].split()[0] in "Tt"
        return False

    def end(self, wait_s: float) -> ProcessEnd:
        """Wait so long for its end."""
        self.process.join(wait_s)
        return ProcessEnd(self.process.exitcode)

    def kill(self, wait_s: float = 0.0) -> None:
        """Wait so long for its end, then kill it."""
        self.process.join(wait_s)
        self.process.kill()
        self.process.join()


def ignore_image_warnings() -> None:
    """Ignore warnings of Pillow, in processes of Headrace alone: filters belong to a program.

    It warns of large images and odd metadata, neither of which stops a run.
    """
    warnings.filterwarnings("ignore", module=r"PIL\.")


def _started(name: str, arguments: tuple[object, ...], ahead: Collection[str]) -> Any:
    """Start a process: forked where the system can tell how it ended, else spawned."""
    from multiprocessing import get_context

    if hasattr(os, "pidfd_open") and sys.executable:
        from headrace._core.fork_server import CannotForkError, ForkedProcess

        process = ForkedProcess(target=_run, args=arguments, name=name, daemon=False)
        process.ahead = tuple(ahead)
        try:
            process.start()
        except OSError as error:
            raise HeadraceError(f"a process cannot be started: {error}") from error
        except CannotForkError:
            pass
        else:
            return process
    spawned = get_context("spawn").Process(
        target=_run_spawned, args=arguments, name=name, daemon=False
    )
    spawned.start()
    return spawned


def _run_spawned(*arguments: Any) -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent is not None
    assert parent.pid is not None
    die_with_parent(parent.pid)
    _run(*arguments)


def _run(
    ignored: Collection[int], function: Callable[..., None], pipe: Any, *arguments: Any
) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    ignore_image_warnings()
    function(pipe, *arguments)
