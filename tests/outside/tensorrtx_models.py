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


def lenet() -> nn.Module:
    """Make LeNet-5 with rectified units."""
    net = nn.Sequential()
    for i, (maps, out) in enumerate(((1, 6), (6, 16)), 1):
        net.add_module(f"conv{i}", nn.Conv2d(maps, out, 5))
        net.add_module(f"relu{i}", nn.ReLU())
        net.add_module(f"pool{i}", nn.MaxPool2d(2))
    net.add_module("flat", nn.Flatten())
    for i, (inner, out) in enumerate(((400, 120), (120, 84), (84, 10)), 1):
        net.add_module(f"fc{i}", nn.Linear(inner, out))
        net.add_module(f"relu{i + 2}", nn.ReLU() if i < 3 else nn.Softmax(1))
    return net


class Parts(nn.Module):
    """Features and a classifier, with the names of torchvision's models."""

    def __init__(self, features: list[nn.Module], classifier: list[nn.Module]) -> None:
        super().__init__()
        self.features, self.classifier = nn.Sequential(*features), nn.Sequential(*classifier)

    def forward(self, x: Any) -> Any:
        """Compute the model."""
        return self.classifier(self.features(x))


class Unnamed(nn.Module):
    """A step without weights in the place that a name leaves free."""

    def __init__(self, step: Any) -> None:
        super().__init__()
        self.forward = step


def alexnet() -> nn.Module:
    """Make AlexNet."""
    features: list[nn.Module] = []
    for maps, out, size, stride, pad, pools in (
        (3, 64, 11, 4, 2, True), (64, 192, 5, 1, 2, True), (192, 384, 3, 1, 1, False),
        (384, 256, 3, 1, 1, False), (256, 256, 3, 1, 1, True),
    ):  # fmt: skip
        features += [nn.Conv2d(maps, out, size, stride, pad), nn.ReLU()]
        features += [nn.MaxPool2d(3, 2)] if pools else []
    flat = Unnamed(lambda x: x.flatten(1))
    return Parts(
        features,
        [flat, nn.Linear(9216, 4096), nn.ReLU(), nn.Identity(), nn.Linear(4096, 4096), nn.ReLU(),
         nn.Linear(4096, 1000)],
    )  # fmt: skip


class Fire(nn.Module):
    """A narrow convolution before two wide ones side by side."""

    def __init__(self, maps: int, narrow: int, wide: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(maps, narrow, 1)
        self.expand1x1 = nn.Conv2d(narrow, wide, 1)
        self.expand3x3 = nn.Conv2d(narrow, wide, 3, padding=1)

    def forward(self, x: Any) -> Any:
        """Compute the block."""
        x = torch.relu(self.squeeze(x))
        return torch.relu(torch.cat([self.expand1x1(x), self.expand3x3(x)], 1))


def squeezenet() -> nn.Module:
    """Make SqueezeNet 1.1; the program pads its third pooling, unlike torchvision."""

    def pool() -> nn.Module:
        return nn.MaxPool2d(3, 2, ceil_mode=True)

    padded = nn.ConstantPad2d((0, 1, 0, 1), -torch.inf)

    features = [
        nn.Conv2d(3, 64, 3, 2), nn.ReLU(), pool(), Fire(64, 16, 64), Fire(128, 16, 64), pool(),
        Fire(128, 32, 128), Fire(256, 32, 128), nn.Sequential(padded, pool()),
        Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), Fire(512, 64, 256),
    ]  # fmt: skip
    last = [nn.Identity(), nn.Conv2d(512, 1000, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return Parts(features, [*last, nn.Flatten()])


def _convolution(maps: int, out: int, size: int, stride: int, groups: int = 1) -> nn.Module:
    convolution = nn.Conv2d(maps, out, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(out), nn.ReLU6())


class Inverted(nn.Module):
    """A wide block between two narrow ones, with a sum where their shapes are one."""

    def __init__(self, maps: int, out: int, stride: int, factor: int) -> None:
        super().__init__()
        wide, self.adds = maps * factor, stride == 1 and maps == out
        first = [_convolution(maps, wide, 1, 1)] if factor > 1 else []
        depth = _convolution(wide, wide, 3, stride, wide)
        last = nn.Conv2d(wide, out, 1, bias=False)
        self.conv = nn.Sequential(*first, depth, last, nn.BatchNorm2d(out))

    def forward(self, x: Any) -> Any:
        """Compute the block."""
        return x + self.conv(x) if self.adds else self.conv(x)


def mobilenet_v2() -> nn.Module:
    """Make MobileNetV2."""
    features, maps = [_convolution(3, 32, 3, 2)], 32
    for factor, out, count, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):  # fmt: skip
        for i in range(count):
            features.append(Inverted(maps, out, 1 if i else stride, factor))
            maps = out
    features.append(_convolution(320, 1280, 1, 1))
    mean = Unnamed(lambda x: x.mean((2, 3)))
    return Parts(features, [mean, nn.Linear(1280, 1000)])


def image(folder: Path) -> Any:
    """Read the image that a test left, (H, W) or (H, W, 3) of RGB, as its program scales it."""
    shape = (32, 32) if (folder / "assets" / "6.pgm").exists() else (224, 224, 3)
    pixels = torch.tensor(list((folder / "image").read_bytes())).reshape(shape).float()
    if pixels.ndim == 2:
        return ((pixels * 0.00392156 - 0.1307) / 0.3081)[None, None]
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return ((pixels / 255 - mean) / deviation).permute(2, 0, 1)[None]


MODELS: dict[str, tuple[Any, Any]] = {
    "mlp": (mlp, torch.full((1, 1), 12.0)),
    "lenet": (lenet, image),
    "alexnet": (alexnet, image),
    "squeezenet": (squeezenet, image),
    "mobilenet_v2": (mobilenet_v2, torch.ones(1, 3, 224, 224)),
    "resnet18": (lambda: resnet((2, 2, 2, 2)), torch.ones(1, 3, 224, 224)),
    "resnet34": (lambda: resnet((3, 4, 6, 3)), torch.ones(1, 3, 224, 224)),
    "resnet50": (lambda: resnet((3, 4, 6, 3), 1), torch.ones(1, 3, 224, 224)),
    "resnext50_32x4d": (lambda: resnet((3, 4, 6, 3), 32, 4), torch.ones(1, 3, 224, 224)),
    "wideresnet50": (lambda: resnet((3, 4, 6, 3), 1, 128), torch.ones(1, 3, 224, 224)),
}
"""Program -> its model, and the input that it computes with or a reader of its image."""


def write(name: str, folder: Path) -> None:
    """Write the weights and the answer of a program's model."""
    torch.manual_seed(0)
    make, x = MODELS[name]
    model = make().eval()
    for module in model.modules():
        if callable(x) and isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)  # answers that depend on the image
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
        answer = model(x(folder) if callable(x) else x).reshape(-1).tolist()
    (folder / "expected.txt").write_text(" ".join(map(str, answer)))


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
