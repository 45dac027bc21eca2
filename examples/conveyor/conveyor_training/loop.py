"""The training loop both networks use: AdamW, one warm-up and cosine cycle, averaged weights."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

__all__ = ["fit", "pick_device"]


def pick_device(name: str | None) -> torch.device:
    """The named device, else the GPU if there is one."""
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def fit(
    network: nn.Module,
    data: Sequence[Tensor],
    loss: Callable[[nn.Module, list[Tensor]], Tensor],
    *,
    steps: int,
    batch: int,
    rate: float,
    seed: int = 0,
) -> nn.Module:
    """Train on tensors of equal first axis; returns the exponential average of the weights."""
    torch.manual_seed(seed)
    device = next(network.parameters()).device
    average = copy.deepcopy(network).eval()
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=0.02)
    warm = min(300, steps // 10)

    def schedule(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1))) + 1e-3

    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)
    start, running = time.monotonic(), 0.0
    network.train()
    for step in range(1, steps + 1):
        index = torch.randint(len(data[0]), (batch,), device=data[0].device)
        value = loss(network, [tensor[index].to(device, non_blocking=True) for tensor in data])
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        keep = min(0.998, step / (step + 20))
        with torch.no_grad():
            mine, theirs = average.state_dict(), network.state_dict()
            for name, tensor in mine.items():
                if tensor.dtype.is_floating_point:
                    tensor.lerp_(theirs[name], 1 - keep)
        if step % max(1, steps // 12) == 0:
            running = float(value.detach())
            print(
                f"  step {step}/{steps} loss {running:.3f} {time.monotonic() - start:.0f} s",
                flush=True,
            )
    return average
