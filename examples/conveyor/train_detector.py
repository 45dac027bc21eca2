"""Train the parcel detector and write detector.onnx.

A small anchor-free network: a depthwise trunk down to 1/32, two steps up again, and one head on
8-pixel cells. The class logits are trained to predict the overlap the box will have (quality
focal loss), so that the best cell of a parcel also has the best box.

    pip install '.[train]'
    python examples/conveyor/train_detector.py            # a GPU if there is one, else the CPU
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from conveyor_scene import CLASSES, HEIGHT, WIDTH
from conveyor_training.arguments import arguments
from conveyor_training.blocks import Block, Conv, Graph, Linear, Separable, upsample
from conveyor_training.loop import fit, pick_device
from conveyor_training.videos import TRAIN_SEEDS, VALIDATION_SEEDS, Shot, resample, shoot
from torch import Tensor, nn
from torch.nn import functional as F

IN_WIDTH, IN_HEIGHT, CELL = 320, 192, 8
MOST = 24  # parcels in one image
SCALE = IN_WIDTH / WIDTH


class Detector(nn.Module):
    """(N, 3, 192, 320) RGB in 0..1 -> class logits (N, 6, 24, 40), log distances (N, 4, 24, 40)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Block(Conv(3, 16, 3, 2), Separable(16, 32, 2), Separable(32, 32))
        self.to8 = Block(Separable(32, 64, 2), Separable(64, 64), Separable(64, 64))
        self.to16 = Block(Separable(64, 96, 2, 5), Separable(96, 96), Separable(96, 96))
        self.to32 = Block(Separable(96, 128, 2, 5), Separable(128, 128, 1, 5))
        self.up16, self.up8 = Conv(128, 96, 1), Conv(96, 64, 1)
        self.merge16, self.merge8 = Separable(96, 96, 1, 5), Separable(64, 64, 1, 5)
        self.score_neck, self.box_neck = Separable(64, 64), Block(Separable(64, 64, 1, 5))
        self.score = Linear(64, len(CLASSES), bias=-4.0)
        self.box = Linear(64, 4, bias=1.5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        c8 = self.to8(self.stem(x))
        c16 = self.to16(c8)
        p16 = self.merge16(c16 + upsample(self.up16(self.to32(c16))))
        p8 = self.merge8(c8 + upsample(self.up8(p16)))
        return self.score(self.score_neck(p8)), self.box(self.box_neck(p8))

    def save(self, path: Path) -> None:
        """Write the ONNX file."""
        g = Graph("conveyor_detector")
        c8 = self.to8.write(g, self.stem.write(g, "image", "stem"), "to8")
        c16 = self.to16.write(g, c8, "to16")
        up = g.upsample(self.up16.write(g, self.to32.write(g, c16, "to32"), "up16"), "up16.twice")
        p16 = self.merge16.write(g, g.add("Add", [c16, up], "sum16"), "merge16")
        up = g.upsample(self.up8.write(g, p16, "up8"), "up8.twice")
        p8 = self.merge8.write(g, g.add("Add", [c8, up], "sum8"), "merge8")
        self.score.write(g, self.score_neck.write(g, p8, "score_neck"), "scores")
        self.box.write(g, self.box_neck.write(g, p8, "box_neck"), "distances")
        rows, columns = IN_HEIGHT // CELL, IN_WIDTH // CELL
        g.save(
            path,
            {"image": (3, IN_HEIGHT, IN_WIDTH)},
            {"scores": (len(CLASSES), rows, columns), "distances": (4, rows, columns)},
            "Parcels on a conveyor: RGB / 255 in, class logits and log edge distances out. "
            "Apache-2.0.",
        )


def take(shot: Shot) -> tuple[np.ndarray, np.ndarray]:
    """Network image (192, 320, 3), truths (MOST, 6): corners, class, 1 asked or -1 ignored."""
    image = resample(shot.image, (0, 0, WIDTH, HEIGHT), IN_WIDTH, IN_HEIGHT)
    if shot.rng.random() < 0.12:  # scaling-filter=0, for those who change the config
        image = np.ascontiguousarray(shot.image[1::2, 1::2])
    rows = np.zeros((MOST, 6), np.float32)
    for row, truth in zip(rows, shot.truths, strict=False):
        left, top, width, height = (v * SCALE for v in truth.box)
        ask = -1 if truth.ignored else 1
        row[:] = left, top, left + width, top + height, truth.class_id, ask
    return image, rows


def _grid(device: torch.device) -> Tensor:
    """(960, 2) cell centres x, y in network pixels."""
    y = torch.arange(IN_HEIGHT // CELL, device=device)
    x = torch.arange(IN_WIDTH // CELL, device=device)
    yy, xx = torch.meshgrid(y, x, indexing="ij")
    return (torch.stack([xx, yy], dim=-1).reshape(-1, 2) + 0.5) * CELL


def boxes_of(distances: Tensor, grid: Tensor) -> Tensor:
    """(N, 4, H, W) log cells -> (N, H*W, 4) corners in network pixels."""
    reach = distances.flatten(2).transpose(1, 2).clamp(-4, 4).exp() * CELL
    return torch.cat([grid - reach[..., :2], grid + reach[..., 2:]], dim=-1)


def overlap(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Element-wise IoU and generalised IoU of corner boxes."""
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    inter = (high - low).clamp(min=0).prod(-1)
    area_a, area_b = (a[..., 2:] - a[..., :2]).prod(-1), (b[..., 2:] - b[..., :2]).prod(-1)
    union = area_a + area_b - inter
    low, high = torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:])
    hull = (high - low).prod(-1)
    iou = inter / union.clamp(min=1e-6)
    return iou, iou - (hull - union) / hull.clamp(min=1e-6)


def loss(network: nn.Module, data: list[Tensor]) -> Tensor:
    """Quality focal loss over all cells, and generalised IoU over the cells of parcels."""
    images, truths = data
    x = images.permute(0, 3, 1, 2).float() / 255
    gain = torch.empty(len(x), 3, 1, 1, device=x.device).uniform_(0.88, 1.12)
    x = (x * gain + torch.empty(len(x), 1, 1, 1, device=x.device).uniform_(-0.06, 0.06)).clamp(0, 1)
    logits, distances = network(x)
    grid = _grid(x.device)
    predicted = boxes_of(distances.float(), grid)
    logits = logits.float().flatten(2).transpose(1, 2)  # (N, P, C)
    box, kind, ask = truths[..., :4], truths[..., 4].long(), truths[..., 5]
    centre = (box[..., :2] + box[..., 2:]) / 2
    away = ((grid[None, :, None] - centre[:, None]) / CELL).abs()  # (N, P, M, 2)
    inside = (grid[None, :, None] > box[:, None, :, :2]) & (
        grid[None, :, None] < box[:, None, :, 2:]
    )
    inside = inside.all(-1)
    near = inside & (away.amax(-1) <= 1.5) & (ask[:, None] != 0)
    distance = away.norm(dim=-1).masked_fill(~near, 1e6)
    best, owner = distance.min(dim=2)  # each cell belongs to the nearest centre
    positive = best < 1e5
    asked = positive & (ask.gather(1, owner) > 0)
    ignored = (inside & (ask[:, None] < 0)).any(2) & ~asked
    target_box = box.gather(1, owner[..., None].expand(-1, -1, 4))
    iou, giou = overlap(predicted, target_box)
    quality = torch.where(asked, iou.detach().clamp(0, 1), torch.zeros_like(iou))
    wanted = F.one_hot(kind.gather(1, owner), len(CLASSES)) * quality[..., None]
    score = logits.sigmoid()
    bce = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    focal = (bce * (wanted - score).abs() ** 2).sum(-1)
    count = quality.sum().clamp(min=1.0)
    return (focal * ~ignored).sum() / count + 2.0 * ((1 - giou) * quality * asked).sum() / count


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent / "detector.onnx", batch=64)
    start = time.monotonic()
    shots = shoot(take, TRAIN_SEEDS[: args.seeds], args.per_seed, args.workers, degrade=True)
    images = torch.from_numpy(np.stack([image for image, _ in shots]))
    truths = torch.from_numpy(np.stack([rows for _, rows in shots]))
    print(f"{len(shots)} images in {time.monotonic() - start:.0f} s", flush=True)
    device = pick_device(args.device)
    if device.type == "cuda":
        images, truths = images.to(device), truths.to(device)
    network = Detector().to(device)
    trained = fit(
        network, [images, truths], loss, steps=args.steps, batch=args.batch, rate=args.rate
    )
    trained.save(args.out)
    size = args.out.stat().st_size
    print(f"{args.out}: {size:,} bytes, {time.monotonic() - start:.0f} s in all", flush=True)
    held = shoot(take, VALIDATION_SEEDS[:40], 6, args.workers, degrade=True)
    with torch.no_grad():
        x = torch.from_numpy(np.stack([p for p, _ in held])).to(device)
        y = torch.from_numpy(np.stack([r for _, r in held])).to(device)
        print(f"validation loss {float(loss(trained, [x, y])):.4f}", flush=True)


if __name__ == "__main__":
    main()
