"""Options of commands from the fields of `RunOptions`, and those that set keys over a config."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from headrace.infer.run_options import KEY_OPTIONS, RunOption, RunOptions, declared, option_name

if TYPE_CHECKING:
    from headrace.config.overrides import GivenKey

_DEVICES = "cpu, cuda, cuda:N; auto takes an NVIDIA GPU that is there and that an installed runtime"
_SEVERAL = "run"  # the command that takes several devices
_METAVARS = {"keys": "[N:]KEY=VALUE", "conf": "[N:]NUMBER", "labels": "[N:]FILE"}


def run_options(command: str, **helps: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of a run that mean something for a command.

    It gets them as `run`, a `RunOptions`, if there are any, and what is set over configs as
    `settings`.

    Args:
        command: its name, as the fields have it.
        helps: texts for the command line where that of the field does not fit.
    """
    fields = {name: o for name, o in declared().items() if command in o.commands}
    keys = {name: o for name, o in KEY_OPTIONS.items() if command in o.commands}

    def decorate(function: Callable[..., object]) -> Callable[..., Any]:
        @wraps(function)
        def called(*args: object, **values: Any) -> Any:
            if fields:
                values["run"] = RunOptions(**{name: values.pop(name) for name in fields})
            settings = _given({name: values.pop(f"set_{name}") for name in keys})
            return function(*args, settings=settings, **values)

        for name, option in reversed(keys.items()):
            called = _key_option(name, helps.get(name, option.help))(called)
        for name, option in reversed(fields.items()):
            text = helps.get(name, option.help)
            make = _device_option if name == "device" else _field_option
            called = make(name, option, text, several=command == _SEVERAL)(called)
        return called

    return decorate


def _field_option(name: str, option: RunOption, help: str, *, several: bool) -> Any:
    """Make the option of a field: choice, number, text or flag; unset it is the field's default."""
    default, flag = getattr(RunOptions(), name), option_name(name)
    if default is False:
        return click.option(flag, is_flag=True, help=help)
    if option.choices:
        kind: Any = click.Choice(option.choices)
        shown = default is not None
        return click.option(flag, type=kind, default=default, show_default=shown, help=help)
    if option.metavar:
        return click.option(flag, metavar=option.metavar, help=help)
    kind = click.IntRange(option.least, option.most)
    return click.option(flag, type=kind, metavar="N", help=help)


def _device_option(name: str, option: RunOption, help: str, *, several: bool) -> Any:
    """Make `--device`; a name that is no device is wrong usage.

    Args:
        name, option: of the field.
        help: what happens there.
        several: True takes several GPUs, `cuda:0,cuda:1`.
    """

    def check(context: click.Context, parameter: click.Parameter, value: str) -> str:
        from headrace._core.errors import ConfigError
        from headrace.engine.device import check_device_name

        names = value.split(",") if several else [value]
        try:
            for one in names:
                check_device_name(one)
        except ConfigError as error:
            lists = ", or several: cuda:0,cuda:1" if several else ""
            text = f"{error:brief}; expected {error.finding.expectation}{lists}"
            raise click.BadParameter(text, context, parameter) from None
        if len(names) > 1 and (len(set(names)) < len(names) or not all(":" in n for n in names)):
            text = f"{value!r} must name different GPUs by their numbers, as cuda:0,cuda:1"
            raise click.BadParameter(text, context, parameter)
        return value

    more = " Several (cuda:0,cuda:1) have a process each." if several else ""
    return click.option(
        f"--{name}",
        default=RunOptions().device,
        show_default=True,
        metavar="DEVICE",
        callback=check,
        help=f"{help}: {_DEVICES} can use.{more}",
    )


def _key_option(name: str, help: str) -> Any:
    option = "--set" if name == "keys" else f"--{name}"
    return click.option(option, f"set_{name}", multiple=True, metavar=_METAVARS[name], help=help)


def _given(texts: dict[str, Sequence[str]]) -> list[GivenKey]:
    """Read the keys that are set over configs; a later one wins."""
    if not any(texts.values()):
        return []
    from headrace.config.overrides import given_conf, given_labels, given_line

    settings = [given_line(text, "--set") for text in texts.get("keys", ())]
    settings += [given_labels(text, "--labels") for text in texts.get("labels", ())]
    settings += [given_conf(text, "--conf") for text in texts.get("conf", ())]
    return settings
