"""The `headrace` command: subcommands are imported only when used."""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from headrace._core.errors import HeadraceError
from headrace._core.files import os_reason

if TYPE_CHECKING:
    from headrace._core.findings import Finding

__all__ = ["main"]

# Subcommand -> one-line help; `headrace --help` must not import what it lists.
_COMMANDS = {
    "run": "Run models on sources and write videos and what was found.",
    "batch": "Run models over many videos and images, on every core or on a Ray cluster.",
    "serve": "Keep a pipeline running, with sources that come and go over HTTP.",
    "build": "Build the engine of a config ahead of time.",
    "calibrate": "Find the INT8 scales of a model from images.",
    "compare": "Find where two models differ on the same frames, and which stage is to blame.",
    "bench": "Time engines, side by side.",
    "eval": "Measure how good configs are on images with truth.",
    "tune": "Search the settings of a tracker against true tracks.",
    "trtexec": "Build, run and time an engine with the options of trtexec.",
    "lint": "Check configs with everything that they name, before they run.",
    "explain": "Show every step on one frame, and the cause of each lost object.",
    "repair": "Search the usual mistakes of a config, tried on frames.",
    "show": "Show a config with origins, a model, or an engine.",
    "init": "Write the config of a bare model, or a plugin to begin with.",
    "trace-plugins": "Show every call into the plugins of a model.",
    "check-plugin": "Check plugins against the contract of TensorRT's documentation.",
    "compile": "Compile a custom library from its C++ sources.",
    "includes": "Print the flags with which C++ sources find headrace's headers.",
    "inspect": "Show what a custom library has, needs, and registers.",
    "demo": "Run the whole pipeline on the demo scene.",
    "trust": "Let C++ libraries run without a worker process.",
    "record": "Keep the output tensors of frames in a file, for tests of parsers.",
    "replay": "Decode recorded tensors without the model, or repeat a call that crashed.",
    "exec": "Run a script that was written for TensorRT, on the CPU.",
    "doctor": "Find out what of this machine can be used: GPU, runtimes, video, packages.",
    "completion": "Print the shell completion script.",
}

# Subcommands that are not in the file of their name.
_FILES = {"includes": "compile", "trust": "guard"}

EPILOG = """\b
Examples:
  headrace demo
  headrace run config_infer_primary.txt video.mp4 -o out.mp4 -o out.jsonl
  headrace run pgie.txt sgie.txt left.mp4 right.mp4 --tracker iou -o tiles.mp4
  headrace show config_infer_primary.txt
  headrace build config_infer_primary.txt

\b
Exit codes:
  0 done          3 config refused     5 custom library or parser   7 refused by --strict
  1 other error   4 model or engine    6 source or output           8 below a --min of eval
  2 wrong usage   9 messages wait for a broker, or are lost         130 interrupted
                  10 repair is undecided   11 a model of a service gives no results
"""

EXIT_INTERRUPTED = 130
EXIT_UNSENT = 9
EXIT_NOT_READY = 11


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name == "completion":
            return completion
        name = cmd_name.replace("-", "_")
        if name != "exec":  # before NumPy: BLAS's threads wait by spinning, for 25 ms of each call
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        module = importlib.import_module(f"headrace.cli.{_FILES.get(cmd_name, name)}")
        command = getattr(module, name)
        assert isinstance(command, click.Command)
        from headrace.cli.output import json_alone

        return json_alone(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from headrace._core.near import near_names

            near = near_names(args[0], _COMMANDS, 1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Turn errors into messages and exit codes; a traceback is only for our own defects."""
        from headrace.cli.ending import signals_watched

        of_program = not (args or kwargs)  # others may call it, and go on after a signal
        with signals_watched() if of_program else contextlib.nullcontext():
            self._main(*args, **kwargs)

    def _main(self, *args: Any, **kwargs: Any) -> None:
        kwargs["standalone_mode"] = False
        _spare_the_end()
        if os.environ.get("LD_PRELOAD") and not (args or kwargs.get("args")):
            from headrace.custom.preloaded import start_again_with_plugins

            start_again_with_plugins()
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # labels need not fit the locale
        try:
            result = super().main(*args, **kwargs)
            if sys.stdout is not None:
                sys.stdout.flush()  # a full disk is reported while there is still time
        except HeadraceError as error:
            _fail(str(error), error.exit_code, error.notices)
        except click.exceptions.Exit as error:
            sys.exit(error.exit_code)
        except (click.exceptions.Abort, KeyboardInterrupt):
            _fail("interrupted", EXIT_INTERRUPTED)
        except click.ClickException as error:
            error.show()
            if "unexpected extra argument" in error.format_message():
                from headrace.cli.output import echo

                echo("a pattern of images must be quoted: 'photos/*.jpg'", err=True)
            sys.exit(error.exit_code)
        except BrokenPipeError:
            # The reader of our output has left (`| head`): nothing more to say to anyone.
            sys.stderr.close()
            sys.exit(1)
        except MemoryError as error:
            _fail(f"there is not enough memory: {error}" if str(error) else "out of memory", 1)
        except ValueError:
            if not (closed := _closed_streams()):
                raise
            fix = "let it print and leave the stream open, or run it with --guard always"
            text = f"{closed} is closed: a library or plugin that ran in this process closed it"
            _fail(f"{text}\n  {fix}", 6)
        except OSError as error:
            if error.filename is not None:  # every file has an error of its own: our defect
                raise
            if isinstance(error, FileNotFoundError):
                _fail("the working directory does not exist any more", 1)
            _drop_stdout()
            _fail(f"standard output cannot be written: {os_reason(error)}", 6)
        except (ImportError, AttributeError, TypeError) as error:  # of packages that do not fit
            from headrace._core.environment import damage_text

            if not (text := damage_text(error)):
                raise
            _fail(text, 1)
        sys.exit(result if isinstance(result, int) else 0)


def _spare_the_end() -> None:
    """Look for no garbage at the end of the process, among all that was ever imported.

    That was a tenth of a short run.
    """
    from headrace._core.processes import ignore_image_warnings

    ignore_image_warnings()
    atexit.register(gc.freeze)


def _fail(message: str, code: int, notices: Sequence[Finding] = ()) -> None:
    """Print warnings, which may be the cause, the error, and other notices; end the program."""
    from headrace.cli.output import echo, print_notices

    print_notices([n for n in notices if n.level == "warning"])
    echo("error: ", fg="red", bold=True, err=True, nl=False)
    echo(message, err=True)
    print_notices([n for n in notices if n.level == "info"])
    sys.exit(code)


def _closed_streams() -> str:
    """Name standard streams that user code closed; standard error is replaced, to have one."""
    streams = {"standard output": sys.stdout, "standard error": sys.stderr}
    closed = [name for name, stream in streams.items() if stream is not None and stream.closed]
    if sys.stderr is not None and sys.stderr.closed:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    return " and ".join(closed)


def _drop_stdout() -> None:
    """Drop the buffer of standard output; it would fail again at the end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


@click.group(
    cls=_LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="headrace")
def main() -> None:
    """Run an unmodified nvinfer config, its model and its custom parser, anywhere."""


_COMPLETION_EPILOG = """\b
Examples:
  eval "$(headrace completion bash)"                                   # this shell
  headrace completion bash > ~/.local/share/bash-completion/completions/headrace
  headrace completion fish > ~/.config/fish/completions/headrace.fish
"""


@click.command(epilog=_COMPLETION_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL (bash, zsh or fish)."""
    from click.shell_completion import get_completion_class

    from headrace.cli.output import echo

    completer = get_completion_class(shell)
    assert completer is not None
    echo(completer(main, {}, "headrace", "_HEADRACE_COMPLETE").source(), lines=True)
