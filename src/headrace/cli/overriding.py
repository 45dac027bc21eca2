"""The options that set keys over a config: `--set`, `--conf`, `--labels`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.config.overrides import GivenKey


def overridable(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--set` to a command; it gets the settings as `given`."""

    @wraps(command)
    def run(
        *args: Any,
        keys: tuple[str, ...],
        confs: tuple[str, ...] = (),
        labels: tuple[str, ...] = (),
        **options: Any,
    ) -> Any:
        given: list[GivenKey] = []
        if keys or confs or labels:
            from headrace.config.overrides import given_conf, given_labels, given_line

            given += [given_line(text, "--set") for text in keys]
            given += [given_labels(text, "--labels") for text in labels]
            given += [given_conf(text, "--conf") for text in confs]
        return command(*args, given=given, **options)

    return click.option(
        "--set", "keys", multiple=True, metavar="[N:]KEY=VALUE",
        help="Set a key of the config, as batch-size=4 or class-attrs-2.topk=5; repeatable. With "
        "several configs N says which: 1 is the first.",
    )(run)  # fmt: skip


def with_results(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--conf` and `--labels` to an overridable command that attaches or shows results."""
    labels = click.option(
        "--labels", multiple=True, metavar="[N:]FILE", help="Label file instead of the config's."
    )
    conf = click.option(
        "--conf", "confs", multiple=True, metavar="[N:]NUMBER",
        help="Smallest confidence of what is found, 0 to 1: sets the threshold that decides.",
    )  # fmt: skip
    return conf(labels(command))


def load_config(path: Path, given: Sequence[GivenKey]) -> ModelConfig:
    """Read the only config of a command, with the options applied.

    Raises:
        ConfigError: the file or an option is refused.
    """
    from headrace.config import ModelConfig
    from headrace.config.overrides import distributed

    return ModelConfig.load(path, distributed(given, [path.name])[0])


def refuse_options(path: Path, given: Sequence[GivenKey]) -> None:
    """Refuse the options for a file that is no config.

    Raises:
        ConfigError: there is one.
    """
    if given:
        from headrace._core.errors import ConfigError

        option, text = given[0].shown
        raise ConfigError(f"{path.name} is no config.", where=f"{option} {text}")
