"""Input layers beside the picture: filled once by the custom library. Source: spec D.7."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from noria._core.errors import CustomLibraryError
from noria.meta import NetworkInfo

if TYPE_CHECKING:
    from noria.config import ModelConfig
    from noria.custom import CustomLibrary
    from noria.engine.session import Session

INITIALIZER = "NvDsInferInitializeInputLayers"


def initialize_extra_inputs(
    cfg: ModelConfig,
    session: Session,
    network: NetworkInfo,
    library: CustomLibrary | None,
) -> dict[str, npt.NDArray[Any]]:
    """Zero-filled arrays for every input but the first, handed once to the custom library.

    Args:
        cfg: the config, for errors.
        session: its inputs are filled.
        network: size of the picture input.
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
        names = ", ".join(map(str, extra))
        where = str(cfg.custom_lib_path or cfg.path)
        raise CustomLibraryError(
            f"the model has further inputs ({names}), and nothing fills them",
            where=where,
            expected=f"a function {INITIALIZER} in the library that custom-lib-path names",
            fix=(
                f"Python: def {INITIALIZER}(layers, network, max_batch): "
                "layers['name'][:] = …; return True",
                "or make these inputs constants (initialisers) of the model",
            ),
        )
    initialize(arrays, network, session.max_batch)
    return arrays
