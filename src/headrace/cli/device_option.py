"""The option `--device` of commands that run or build engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

_EACH = "cpu, cuda, cuda:N; auto takes an NVIDIA GPU that is there and that an installed runtime"


def with_device(
    what: str, *, several: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--device` to a command; a name that is no device is wrong usage.

    Args:
        what: what happens there, for the help.
        several: True takes several GPUs, `cuda:0,cuda:1`.
    """

    def check(context: click.Context, parameter: click.Parameter, value: str) -> str:
        from headrace._core.errors import ConfigError
        from headrace.engine.device import check_device_name

        names = value.split(",") if several else [value]
        try:
            for name in names:
                check_device_name(name)
        except ConfigError as error:
            lists = ", or several: cuda:0,cuda:1" if several else ""
            text = f"{error.found}; expected {error.expected}{lists}"
            raise click.BadParameter(text, context, parameter) from None
        if len(names) > 1 and (len(set(names)) < len(names) or not all(":" in n for n in names)):
            text = f"{value!r} must name different GPUs by their numbers, as cuda:0,cuda:1"
            raise click.BadParameter(text, context, parameter)
        return value

    more = " Several (cuda:0,cuda:1) have a process each." if several else ""
    return click.option(
        "--device",
        default="auto",
        show_default=True,
        metavar="DEVICE",
        callback=check,
        help=f"{what}: {_EACH} can use.{more}",
    )
