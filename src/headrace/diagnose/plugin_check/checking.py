"""`check_plugins`: every check of every plugin of a library, a module, or a config's model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._core.errors import CustomLibraryError
from headrace._core.types import DType
from headrace.diagnose.plugin_check import leaks, objects, runs
from headrace.diagnose.plugin_check.breach import Breach, PluginReport
from headrace.diagnose.plugin_check.isolation import in_copy, run_check
from headrace.diagnose.plugin_check.lives import Shape, Subject
from headrace.diagnose.plugin_check.subjects import of_network, tried, why_no_kernels
from headrace.plugins.loading import PYTHON_SUFFIXES
from headrace.plugins.lookup import unknown_error
from headrace.plugins.registry import PluginRegistry, get_plugin_registry, known_plugins

if TYPE_CHECKING:
    from headrace.engine.builder import BuildOptions
    from headrace.network.network import Network

_OF_OBJECTS = (
    ("object", objects.check_object),
    ("descriptions", objects.check_descriptions),
    ("formats", objects.check_formats),
    ("saved data", objects.check_saved),
)
_OF_FIELDS = (("creation without fields", objects.check_defaults),)
_ENQUEUE = ("enqueue", runs.check_enqueue)
_OF_RESULTS = (
    ("lent data", runs.check_lent, None),
    ("ends", runs.check_ends, "destroy"),
    ("memory", runs.check_memory, "deterministic"),
    ("tactics", runs.check_tactics, "tactics"),
    ("copies", runs.check_copies, "clone-same"),
    ("order of fields", objects.check_creation, "create-by-name"),
    ("save and load", runs.check_loaded, "deserialize-same"),
    ("initialize again", runs.check_initialize, "initialize"),
    ("shapes", runs.check_shapes, "shape-change"),
    ("profiles", runs.check_profiles, "configure"),
    ("contexts", runs.check_contexts, "contexts"),
    ("leaks", leaks.check_leaks, "leaks"),
)
"""Name, check, clause of an end in enqueue; they need results that are right as far as known."""
_FIRST = 4
"""A breach that one of so many of them finds makes the results of the others mean nothing."""


def check_library(
    path: Path,
    *,
    inputs: Sequence[tuple[DType, Shape]] = (),
    fields: Mapping[str, object] | None = None,
    only: Sequence[str] = (),
) -> list[PluginReport]:
    """Check the plugins that a C++ library or a Python file registers.

    Args:
        path: the file.
        inputs: element types and shapes of the inputs; none: they are tried out.
        fields: values of the plugins' fields by name; none: the creators' defaults, or ones.
        only: names of the plugins to check; none: all.

    Raises:
        CustomLibraryError: it cannot be loaded, or has no such plugins.
    """
    path = path.absolute()
    # creators of a Python file may have the names of others that are loaded here
    is_python = path.suffix.lower() in PYTHON_SUFFIXES
    registry = PluginRegistry() if is_python else get_plugin_registry()
    _, breach = in_copy(lambda: registry.load_library(path) and None)
    if breach is not None:
        raise CustomLibraryError(
            f"it cannot be loaded: {breach.event}", where=str(path), fix=list(breach.hints)
        )
    before = {id(c) for c in registry.all_creators}
    registry.load_library(path)
    added = [c for c in registry.all_creators if id(c) not in before]
    try:
        return _reports(path, registry, before, (inputs, fields or {}, only))
    finally:
        for creator in added:
            registry.deregister_creator(creator)


def _reports(
    path: Path,
    registry: PluginRegistry,
    before: set[int],
    asked: tuple[Sequence[tuple[DType, Shape]], Mapping[str, object], Sequence[str]],
) -> list[PluginReport]:
    """The reports of the creators of a file."""
    inputs, fields, only = asked
    creators = [c for c in registry.all_creators if id(c) not in before or _is_of(c, path)]
    creators = [c for c in creators if not only or c.name in only]
    if not creators:
        raise CustomLibraryError(
            f"no plugin{' called ' + ', '.join(only) if only else ''} is registered by it",
            where=str(path),
            expected="a library with REGISTER_TENSORRT_PLUGIN or getCreators, or a Python file "
            "with creators",
        )
    reports = []
    for creator in creators:
        report = PluginReport(_named(creator))
        for breach in run_check(partial(objects.check_creator, creator)):
            report.add(breach)
        if all(b.level != "error" for b in report.breaches):
            _try(report, creator, fields, inputs)
        reports.append(_placed(report))
    return reports


def check_network(
    network: Network, options: BuildOptions, *, only: Sequence[str] = ()
) -> list[PluginReport]:
    """Check the plugins of a network's nodes, with their attributes, types and shapes.

    Raises:
        HeadraceError: the network cannot be read as far as its plugins.
    """
    reports = []
    where, registry = str(network.path or "the model"), known_plugins()
    error = unknown_error(network, "headrace", registry, where)
    if error is not None:
        raise error
    for subject, notices in of_network(network, options, registry):
        if only and subject.creator.name not in only:
            continue
        report = PluginReport(f"{_named(subject.creator)}, node {subject.layer!r}")
        report.notes += notices
        for breach in run_check(partial(objects.check_creator, subject.creator)):
            report.add(breach)
        if all(b.level != "error" for b in report.breaches):
            _check(subject, report)
        reports.append(_placed(report))
    return reports


def _try(
    report: PluginReport,
    creator: Any,
    fields: Mapping[str, object],
    inputs: Sequence[tuple[DType, Shape]],
) -> None:
    trial = tried(creator, fields, inputs)
    report.guessed = trial.guessed
    if trial.subject is not None:
        _check(trial.subject, report)
    elif len(trial.refusals) == 1 and (fields or trial.refusals[0].clause != "create"):
        # so it is whatever the inputs are
        report.add(trial.refusals[0])
    else:
        report.notes += [f"of inputs that were tried: {b.event}" for b in trial.refusals[:3]]


def _check(subject: Subject, report: PluginReport) -> None:
    report.inputs = ", ".join(
        f"{s.dtype.name} {_sizes(subject, i)}" for i, s in enumerate(subject.specs)
    )
    for name, check in _OF_OBJECTS:
        _add(report, name, run_check(partial(check, subject)))
    for name, check in _OF_FIELDS:  # a creator that ends the process there has no default, either
        found = run_check(partial(check, subject))
        _add(report, name, [replace(b, clause="create-defaults", level="warning") for b in found])
    if any(b.level == "error" and b.clause in _NEEDED for b in report.breaches):
        _skip(report, "its objects cannot be made", (_ENQUEUE[0], *(n for n, _, _ in _OF_RESULTS)))
        return
    if (reason := why_no_kernels(subject.creator)) is not None:
        text = f"{reason}: a call would compute nothing"
        report.add(Breach("gpu", text, "warning", "", (_FOR_HOST,)))
        _skip(report, "there is no GPU", (_ENQUEUE[0], *(n for n, _, _ in _OF_RESULTS)))
        return
    before = len(report.breaches)
    _add(report, _ENQUEUE[0], run_check(partial(_ENQUEUE[1], subject)))
    wrong = [b for b in report.breaches[before:] if b.clause not in _HARMLESS]
    if wrong:
        reason = f"enqueue is not right: {wrong[0].clause}"
        # what it kept of lent data may have changed since
        told = int(wrong[0].clause == "deterministic")
        for name, check, ended in _OF_RESULTS[:told]:
            _add(report, name, run_check(partial(check, subject), ended=ended))
        _skip(report, reason, tuple(n for n, _, _ in _OF_RESULTS[told:]))
        return
    for number, (name, check, ended) in enumerate(_OF_RESULTS):
        before = len(report.breaches)
        _add(report, name, run_check(partial(check, subject), ended=ended))
        if number < _FIRST and any(b.level == "error" for b in report.breaches[before:]):
            reason = f"results are not to be compared: {report.breaches[-1].clause}"
            _skip(report, reason, tuple(n for n, _, _ in _OF_RESULTS[number + 1 :]))
            return


_FOR_HOST = (
    "headrace compile --cuda host compiles kernels for the processor, where they are checked"
)
_NEEDED = frozenset({
    "create", "clone", "capabilities", "outputs-count", "output-types", "output-shapes", "formats",
    "configure", "initialize", "format-limit", "attach", "exceptions", "returns", "workspace",
})  # fmt: skip
_HARMLESS = frozenset({"outputs-written"})
"""Breaches of a run that leave results to compare."""


def _add(report: PluginReport, name: str, breaches: Sequence[Breach]) -> None:
    report.checked.append(name)
    for breach in breaches:
        report.add(breach)


def _skip(report: PluginReport, reason: str, names: Sequence[str]) -> None:
    report.skipped |= dict.fromkeys(names, reason)


def _placed(report: PluginReport) -> PluginReport:
    """The report with its plugin in every breach."""
    report.breaches = [replace(b, where=f"plugin {report.plugin}") for b in report.breaches]
    return report


def _sizes(subject: Subject, index: int) -> str:
    return " or ".join(
        dict.fromkeys("x".join(map(str, size[index])) or "scalar" for size in subject.sizes)
    )


def _named(creator: Any) -> str:
    space = f", namespace {creator.plugin_namespace}" if creator.plugin_namespace else ""
    return f"{creator.name} version {creator.plugin_version}{space}"


def _is_of(creator: Any, path: Path) -> bool:
    return getattr(creator, "library", None) == str(path)
