"""Weights for programs of wang-xinyu/tensorrtx, and PyTorch's answers: run by a Python with torch.

    python tensorrtx_models.py NAME FOLDER

Writes FOLDER/weights.wts, which the programs read, and FOLDER/expected.txt.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn


class Block(nn.Module):
    """Two or three convolutions around a sum, with the names of torchvision's ResNets."""

    def __init__(self, maps: int, width: int, out: int, stride: int, groups: int) -> None:
        super().__init__()
        if groups:  # a bottleneck
            self.conv1 = nn.Conv2d(maps, width, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, stride, 1, groups=groups, bias=False)
            self.conv3 = nn.Conv2d(width, out, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(out)
        else:
            self.conv1 = nn.Conv2d(maps, width, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
            self.conv3 = None
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or maps != out:
            self.downsample = nn.Sequential(
                nn.Conv2d(maps, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Any) -> Any:
        """Compute the block."""
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        if self.conv3 is not None:
            y = self.bn3(self.conv3(torch.relu(y)))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


def resnet(depths: tuple[int, ...], groups: int = 0, width: int = 64) -> nn.Module:
    """Make a ResNet; `groups` 0 has plain blocks, else bottlenecks."""
    net = nn.Sequential()
    net.add_module("conv1", nn.Conv2d(3, 64, 7, 2, 3, bias=False))
    net.add_module("bn1", nn.BatchNorm2d(64))
    net.add_module("relu", nn.ReLU())
    net.add_module("maxpool", nn.MaxPool2d(3, 2, 1))
    maps = 64
    for i, depth in enumerate(depths):
        inner = (64 << i) * groups * width // 64 if groups else 64 << i
        out = 256 << i if groups else inner
        layer = nn.Sequential()
        for j in range(depth):
            stride = 2 if i and not j else 1
            layer.append(Block(maps, inner, out, stride, groups))
            maps = out
        net.add_module(f"layer{i + 1}", layer)
    net.add_module("pool", nn.AdaptiveAvgPool2d(1))
    net.add_module("flat", nn.Flatten())
    net.add_module("fc", nn.Linear(maps, 1000))
    return net


def mlp() -> nn.Module:
    """Make one linear unit."""
    net = nn.Sequential()
    net.add_module("linear", nn.Linear(1, 1))
    return net


MODELS: dict[str, tuple[Any, Any]] = {
    "mlp": (mlp, torch.full((1, 1), 12.0)),
    "resnet18": (lambda: resnet((2, 2, 2, 2)), torch.ones(1, 3, 224, 224)),
    "resnet34": (lambda: resnet((3, 4, 6, 3)), torch.ones(1, 3, 224, 224)),
    "resnet50": (lambda: resnet((3, 4, 6, 3), 1), torch.ones(1, 3, 224, 224)),
    "resnext50_32x4d": (lambda: resnet((3, 4, 6, 3), 32, 4), torch.ones(1, 3, 224, 224)),
    "wideresnet50": (lambda: resnet((3, 4, 6, 3), 1, 128), torch.ones(1, 3, 224, 224)),
}
"""Program -> its model and the input that it computes with."""


def write(name: str, folder: Path) -> None:
    """Write the weights and the answer of a program's model."""
    torch.manual_seed(0)
    make, x = MODELS[name]
    model = make().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
            nn.init.uniform_(module.running_var, 0.8, 1.2)
    with open(folder / "weights.wts", "w", encoding="ascii") as file:
        state = model.state_dict()
        file.write(f"{len(state)}\n")
        for key, values in state.items():
            digits = values.float().numpy().astype(">f4").tobytes().hex(" ", 4)
            file.write(f"{key} {values.numel()} {digits}\n")
    with torch.no_grad():
        answer = model(x).reshape(-1).tolist()
    (folder / "expected.txt").write_text(" ".join(map(str, answer)))


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
