"""Names of a package that are resolved on first use: importing it brings no module of theirs.

A package imports them for type checkers, and says the same again for everybody else:

    if TYPE_CHECKING:
        from headrace.engine.plan import Plan, PlanSummary
    else:
        __getattr__, __dir__ = lazy(__name__, {".plan": "Plan PlanSummary"})
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


def lazy(
    package: str, names: Mapping[str, str], modules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package with late names.

    Args:
        package: its name, `__name__` there.
        names: module, relative to the package (".plan") -> its names, with spaces between.
        modules: those that are values themselves (".meta.table" is the name `table`).

    Returns:
        `__getattr__(name)`, which keeps in the package what it has resolved once and raises
        AttributeError for other names, and `__dir__()`: what is there and what may come, sorted.
    """
    home = vars(sys.modules[package])
    where = {name: module for module, listed in names.items() for name in listed.split()}
    whole = {module.rpartition(".")[2]: module for module in modules}

    def get(name: str) -> Any:
        if name in where:
            value = getattr(import_module(where[name], package), name)
        elif name in whole:
            value = import_module(whole[name], package)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home[name] = value
        return value

    def every_name() -> list[str]:
        return sorted({*home, *where, *whole})

    return get, every_name


def import_extra(module: str, extra: str) -> Any:
    """The module of an optional package.

    Raises:
        MissingExtraError: the package is not installed; the error says how to install it.
    """
    if (there := sys.modules.get(module)) is not None:
        return there
    try:
        with as_guest():
            return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise  # the package is there, but broken
        from headrace._core.errors import MissingExtraError  # names of errors are late, too

        raise MissingExtraError(
            f"{package} is not installed, and this needs it", fix=install_command(extra)
        ) from error


@contextmanager
def as_guest() -> Iterator[None]:
    """Restore settings of the whole program that packages change while the block imports them.

    That is the environment, the import path, warning filters, the state of `random`, and how
    `multiprocessing` starts processes.
    """
    import random  # late, as the next: not every program needs them
    from multiprocessing import get_start_method, set_start_method

    environment, path = dict(os.environ), list(sys.path)
    numbers, usual = random.getstate(), get_start_method(allow_none=True)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update({k: v for k, v in environment.items() if os.environ.get(k) != v})
        sys.path[:] = path
        random.setstate(numbers)
        if get_start_method(allow_none=True) != usual:
            set_start_method(usual, force=True)


def install_command(extra: str) -> str:
    """The `pip install` of the packages of an extra, as the installed headrace lists them.

    It does not name `headrace[extra]`: it is not on PyPI yet.
    """
    from importlib.metadata import PackageNotFoundError, requires  # late: 10 ms

    try:
        lines = [line.partition(";") for line in requires("headrace") or ()]
    except PackageNotFoundError:  # its source is on the path, nothing is installed
        lines = []
    packages = [f"'{name.strip()}'" for name, _, when in lines if f'extra == "{extra}"' in when]
    return (
        f"pip install {' '.join(packages) or repr(f'.[{extra}]') + ' in the checkout of headrace'}"
    )
