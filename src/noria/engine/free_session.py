"""A plan without a batch that is ready to run: shapes are whatever the model says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from noria._core.errors import EngineError
from noria.engine.plan_session import PlanSession
from noria.engine.tensors import Tensor
from noria.network.tensor_spec import TensorSpec


class FreeSession(PlanSession):
    """`PlanSession` for plans built with `batched=False`: networks made by code, parts of models.

    Nothing is padded, split, converted or reshaped; scalars stay scalars.
    """

    def run(self, inputs: Mapping[str, Tensor], *, to_host: bool = True) -> dict[str, Any]:
        """Run once.

        Args:
            inputs: one array per input, of the declared type and rank; where the model says a size
                it must be that, and free axes with one name must be equal.
            to_host: see `PlanSession.run`.

        Returns:
            One new array per output in binding order.

        Raises:
            EngineError: an input is missing, unknown, or of the wrong shape or type; the runtime
                failed; the session is closed.
        """
        runner = self._open_runner()
        self._check_names(inputs)
        feeds = {}
        named: dict[str, int] = {}
        for name, spec in self._by_name.items():
            tensor = inputs[name]
            if not isinstance(tensor, np.ndarray):
                tensor = self._placed(name, tensor)
            self._check(spec, tensor, named)
            on_host = isinstance(tensor, np.ndarray)
            feeds[name] = np.asarray(tensor, order="C") if on_host else tensor
        outputs = self._run(runner, feeds, to_host)
        return {spec.name: array for spec, array in zip(self.outputs, outputs, strict=True)}

    def _check(self, spec: TensorSpec, tensor: Any, named: dict[str, int]) -> None:
        shape = tuple(tensor.shape)
        fits = len(shape) == len(spec.shape)
        for want, have in zip(spec.shape, shape, strict=False):
            if isinstance(want, str) and want:
                want = named.setdefault(want, have)
            fits = fits and want in (None, "", have)
        if not fits:
            told = "x".join(map(str, shape)) or "scalar"
            raise EngineError(
                f"input {spec.name!r} has shape {told}", where=self._where, expected=str(spec)
            )
        dtype = getattr(tensor, "dtype", None)
        if isinstance(tensor, np.ndarray) and dtype != spec.dtype:
            raise EngineError(
                f"input {spec.name!r} is {dtype}", where=self._where, expected=spec.dtype.name
            )
