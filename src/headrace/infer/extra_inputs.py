"""Inputs of a model beside the image: the custom library fills them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import CustomLibraryError
from headrace.custom.user_calls import INPUT_INITIALIZER
from headrace.meta import NetworkInfo

if TYPE_CHECKING:
    from headrace._core.types import Array
    from headrace.config import ModelConfig
    from headrace.custom import CustomLibrary
    from headrace.engine.session import Session
    from headrace.network.tensor_spec import TensorSpec


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
            "or make these inputs constants (initialisers) of the model",
        ),
        code="inputs-unfilled",
    )


def initialize_extra_inputs(
    cfg: ModelConfig,
    session: Session,
    network: NetworkInfo,
    library: CustomLibrary | None,
) -> dict[str, Array]:
    """Zero-filled arrays for every input but the first, handed once to the custom library.

    Args:
        cfg: the config, for errors.
        session: its inputs are filled.
        network: size of the image input.
        library: the one that `custom-lib-path` names, if it is loaded.

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
        raise unfilled_inputs(cfg, extra)
    initialize(arrays, network, session.max_batch)
    return arrays
