"""What a worker is asked to build plugins for, read from where nobody is to be believed."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=4096)]
Axis = Annotated[int, Field(ge=-(2**40), lt=2**40)]
Axes = Annotated[tuple[Axis, ...], Field(max_length=64)]
Free = Annotated[tuple[Axis | Text | None, ...], Field(max_length=64)]
Type = Annotated[str, Field(pattern=r"^[<>|=][biufV][0-9]{1,2}$")]


class BuildRequest(BaseModel):
    """Payload of `engine_operations.build_layers`, but for the number of the network."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    inputs: Annotated[tuple[tuple[Text, Type, Free], ...], Field(max_length=4096)]
    max_batch: Annotated[int, Field(ge=1, lt=2**20)]
    batched: bool
    profiles: Annotated[tuple[dict[Text, tuple[Axes, Axes, Axes]], ...], Field(max_length=64)]
    where: Text
