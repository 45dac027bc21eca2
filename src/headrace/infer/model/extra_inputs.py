"""Inputs of a model beside the image: the custom library fills them, or a rule of the exporter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import ConfigError, CustomLibraryError, ModelError
from headrace._core.findings import Finding, Level
from headrace.custom.user_calls import INPUT_INITIALIZER
from headrace.meta import NetworkInfo

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.config import ModelConfig
    from headrace.custom import CustomLibrary
    from headrace.engine.session import Session
    from headrace.network.tensor_spec import TensorSpec


_RULES: Mapping[str, tuple[str, Callable[[int, int], tuple[int, ...]]]] = {
    "orig_target_sizes": ("width and height", lambda w, h: (w, h)),
    "im_shape": ("height and width", lambda w, h: (h, w)),
    "image_shape": ("height and width", lambda w, h: (h, w)),
    "im_info": ("height, width and scale", lambda w, h: (h, w, 1)),
    "scale_factor": ("scales of height and width", lambda w, h: (1, 1)),
}
"""Inputs that exporters of DETR's line and of Paddle write; what they hold makes boxes of pixels of
the network input. Source: the exporters' own post-processing."""


def values_by_rule(spec: TensorSpec, network: NetworkInfo) -> tuple[int, ...] | None:
    """Return the values of each item of an input that an exporter's rule fills, else None."""
    rule = _RULES.get(spec.name)
    values = () if rule is None else rule[1](network.width, network.height)
    fits = len(spec.shape) == 2 and spec.shape[1] in (len(values), None)
    return values if values and fits else None


def configured_values(
    cfg: ModelConfig, extra: Sequence[TensorSpec]
) -> dict[str, tuple[float, ...]]:
    """Read the values that `input-values` gives to inputs beside the image.

    Raises:
        ConfigError: an item is no NAME:VALUE,…, names no such input, or has another number of
            values than one item of the input.
    """
    sizes = {spec.name: [d for d in spec.shape if isinstance(d, int)] for spec in extra}
    values: dict[str, tuple[float, ...]] = {}
    for item in cfg.input_values:
        name, _, text = item.strip().rpartition(":")
        where, expected = cfg.where("input_values"), "NAME:VALUE,VALUE, as scale_factor:1,1"
        try:
            values[name] = tuple(float(number) for number in text.split(","))
        except ValueError as error:
            problem = f"input-values: {item!r} has no numbers behind a colon"
            raise ConfigError(problem, where=where, expected=expected) from error
        if name not in sizes:
            problem = f"input-values: no input beside the image is called {name!r}"
            raise ConfigError(problem, where=where, expected=f"one of {', '.join(sizes) or 'none'}")
        count = len(values[name])
        if count not in (1, prod(sizes[name]), prod(sizes[name][1:])):
            problem = f"input-values: {count} values for input {name}, whose axes are {sizes[name]}"
            raise ConfigError(problem, where=where, expected=expected)
    return values


def _put(array: Array, values: Sequence[float]) -> None:
    """Fill an input: with one value, with all, or each item with the same."""
    whole = len(values) in (1, array.size)
    shape = () if len(values) == 1 else array.shape if whole else array.shape[1:]
    array[...] = np.reshape(values, shape)


def unfilled_inputs(cfg: ModelConfig, extra: Sequence[TensorSpec]) -> CustomLibraryError:
    """Make the error for inputs beside the first that no library fills."""
    names = ", ".join(map(str, extra))
    return CustomLibraryError(
        f"the model has further inputs ({names}), and nothing fills them",
        where=str(cfg.custom_lib_path or cfg.path),
        expected=f"a function {INPUT_INITIALIZER} in the library that custom-lib-path names",
        fix=(
            f"Python: def {INPUT_INITIALIZER}(layers, network, max_batch): "
            "layers['name'][:] = …; return True",
            "or set input-values=NAME:VALUE,VALUE for what is always the same",
            "or make these inputs constants (initialisers) of the model",
        ),
        code="inputs-unfilled",
    )


def unfilled_of_bare(path: Path, extra: Sequence[TensorSpec]) -> ModelError | None:
    """Make the error for inputs beside the image of a model without a config; None for none.

    Args:
        path: of the model.
        extra: its inputs beside the image to which no key gives values.
    """
    one = NetworkInfo(1, 1, 3)  # a rule fills an input of every size, or of none
    names = ", ".join(str(spec) for spec in extra if values_by_rule(spec, one) is None)
    if not names:
        return None
    return ModelError(
        f"the model has further inputs ({names}), and nothing fills them",
        where=str(path),
        fix=f"write a config with custom-lib-path: its {INPUT_INITIALIZER} fills "
        "them; or --set input-values=NAME:VALUE,VALUE; or make them constants of the model",
        code="inputs-unfilled",
    )


def initialize_extra_inputs(
    cfg: ModelConfig,
    session: Session,
    network: NetworkInfo,
    library: CustomLibrary | None,
    notices: list[Finding],
) -> dict[str, Array]:
    """Make arrays for every input but the first: by the library's function, or else by rule.

    The library gets them once, filled with zeros.

    Args:
        cfg: the config, for errors.
        session: its inputs are filled.
        network: size of the image input.
        library: the one that `custom-lib-path` names, if it is loaded.
        notices: gets one about the inputs that a rule fills.

    Returns:
        Name -> (max_batch, ...) array for batched inputs, or the input's own shape.

    Raises:
        CustomLibraryError: there are such inputs, and no library that can fill them.
    """
    extra = session.inputs[1:]
    if not extra:
        return {}
    arrays = {}
    for spec in extra:
        shape = [d if isinstance(d, int) else session.max_batch for d in spec.shape]
        if spec.name in session.batched_inputs:
            shape[0] = session.max_batch
        arrays[spec.name] = np.zeros(shape, spec.dtype)
    initialize = library.input_initializer() if library is not None else None
    if initialize is None:
        notices += by_rule(cfg, extra, network)
        fill_by_rule(extra, arrays, network)
    else:
        initialize(arrays, network, session.max_batch)
    fill_as_configured(cfg, extra, arrays)
    return arrays


def fill_by_rule(
    extra: Sequence[TensorSpec], arrays: Mapping[str, Array], network: NetworkInfo
) -> None:
    """Fill the inputs that an exporter's rule fills; the others keep their values."""
    for spec in extra:
        values = values_by_rule(spec, network)
        if values is not None:
            arrays[spec.name][:] = values


def fill_as_configured(
    cfg: ModelConfig, extra: Sequence[TensorSpec], arrays: Mapping[str, Array]
) -> None:
    """Fill the inputs that `input-values` names; see `configured_values`."""
    for name, values in configured_values(cfg, extra).items():
        _put(arrays[name], values)


def by_rule(cfg: ModelConfig, extra: Sequence[TensorSpec], network: NetworkInfo) -> list[Finding]:
    """Report the values of each of these inputs; a library's own parser may expect others.

    Raises:
        ConfigError: see `configured_values`.
        CustomLibraryError: neither `input-values` nor a rule fills one of them.
    """
    given = configured_values(cfg, extra)
    extra = [spec for spec in extra if spec.name not in given]
    values = {spec.name: values_by_rule(spec, network) for spec in extra}
    if missing := [spec for spec in extra if values[spec.name] is None]:
        raise unfilled_inputs(cfg, missing)
    own = cfg.custom_lib_path is not None
    level: Level = "warning" if own else "info"
    code = "inputs-assumed" if own else "inputs-filled"
    text = "nothing fills the input {name}: it gets {values} ({what}), so that boxes are in pixels "
    text += "of the network input"
    fix = f"fill it otherwise by input-values, or a function {INPUT_INITIALIZER} in the library"
    data = [
        {"name": name, "values": ", ".join(map(str, numbers or ())), "what": _RULES[name][0]}
        for name, numbers in values.items()
    ]
    where = str(cfg.custom_lib_path or cfg.path)
    return [Finding(code, level, text, where, item, remedies=(fix,)) for item in data]
