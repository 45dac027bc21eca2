"""Made scenes with exact truth: what trackers make of crossings, occlusions and look-alikes.

`python -m benchmarks.track_scenes` prints the table of docs/tracking.md.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt

from headrace.diagnose.evaluate.tracks import TrackScores, score_tracks
from headrace.media import Frame, PixelFormat
from headrace.meta import UNTRACKED_OBJECT_ID, Detections, FrameMeta, Space
from headrace.pipeline.track import open_tracker

WIDTH, HEIGHT, LENGTH = 960, 544, 300
TRUTH = "truth"
PICTURED = (4, 10, 40)  # frames
ROOM = "maxTargetsPerStream=300"
Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]


@dataclass
class Scene:
    """Textured boxes that move, with posts in front of them.

    Attributes:
        ways: (T, N, 4) left, top, width, height; NaN where an object is not there.
        posts: rectangles that hide what is behind them, as functions of the frame.
        pan: (T, 2) how far the camera has turned, in pixels.
        alike: all objects have one look.
    """

    ways: Floats
    posts: Sequence[Callable[[int], tuple[int, int, int, int]]] = ()
    pan: Floats = field(default_factory=lambda: np.zeros((LENGTH, 2)))
    alike: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        coarse = rng.integers(60, 140, (2 * HEIGHT // 16, 3 * WIDTH // 16, 3))
        self._ground = np.kron(coarse, np.ones((16, 16, 1))).astype(np.uint8)
        count = self.ways.shape[1]
        looks = [
            rng.integers(0, 256, (6, 4, 3)) // 2 + rng.integers(0, 128, 3) for _ in range(count)
        ]
        self._looks = [looks[0]] * count if self.alike else looks
        self._rng = rng

    def visible(self, frame: int) -> npt.NDArray[np.bool_]:
        """(N,) which objects a detector would find: more than half of them is seen."""
        mask = np.zeros((HEIGHT, WIDTH), np.int32)
        boxes = self.ways[frame]
        inside = np.isfinite(boxes).all(axis=1)
        for i in np.flatnonzero(inside).tolist():
            left, top, right, bottom = _corners(boxes[i])
            mask[top:bottom, left:right] = i + 1
        for post in self.posts:
            x, y, w, h = post(frame)
            mask[y : y + h, x : x + w] = 0
        seen = np.zeros(len(boxes), np.bool_)
        areas = np.bincount(mask.ravel(), minlength=len(boxes) + 1)[1:]
        whole = np.where(inside, boxes[:, 2] * boxes[:, 3], np.inf)
        seen[:] = areas >= 0.4 * whole
        return seen

    def draw(self, frame: int) -> Frame:
        """The image."""
        dx, dy = (int(v) for v in self.pan[frame])
        top, left = HEIGHT // 2 + dy, WIDTH + dx
        image = self._ground[top : top + HEIGHT, left : left + WIDTH].copy()
        for box, look in zip(self.ways[frame], self._looks, strict=True):
            if np.isfinite(box).all():
                x0, y0, x1, y1 = _corners(box)
                w, h = max(1, int(box[2])), max(1, int(box[3]))
                rows = (np.arange(y0, y1) - int(box[1])) * 6 // h
                columns = (np.arange(x0, x1) - int(box[0])) * 4 // w
                image[y0:y1, x0:x1] = look[np.ix_(rows.clip(0, 5), columns.clip(0, 3))]
        for post in self.posts:
            x, y, w, h = post(frame)
            image[y : y + h, x : x + w] = 100
        noisy = image + self._rng.normal(0, 4, image.shape)
        return Frame.from_array(noisy.clip(0, 255).astype(np.uint8), PixelFormat.BGR)


def _corners(box: Floats) -> tuple[int, int, int, int]:
    left, top = int(box[0]), int(box[1])
    right, bottom = left + int(box[2]), top + int(box[3])
    return max(0, left), max(0, top), max(0, min(WIDTH, right)), max(0, min(HEIGHT, bottom))


def wander(count: int, rng: np.random.Generator, speed: float = 3.0, size: float = 60) -> Floats:
    """Ways that bend, and turn back at the border."""
    place = rng.uniform((20, 20), (WIDTH - 80, HEIGHT - 120), (count, 2))
    moved = rng.normal(0, speed, (count, 2))
    extent = np.column_stack((rng.uniform(0.5, 0.8, count) * size, np.full(count, size)))
    ways = np.empty((LENGTH, count, 4))
    for t in range(LENGTH):
        ways[t] = np.concatenate((place, extent), axis=1)
        moved = moved * 0.98 + rng.normal(0, 0.2 * speed / 3, moved.shape)
        place = place + moved
        low, high = place < 5, place + extent > (WIDTH - 5, HEIGHT - 5)
        moved = np.where(low, np.abs(moved), np.where(high, -np.abs(moved), moved))
    return ways


def meeting(hidden: int, seed: int) -> Scene:
    """Pairs that meet behind a post again and again, hidden for some frames each time.

    Behind the post an object goes on, turns back, or waits: where it comes out its box does not
    tell which of the two it is.
    """
    rng = np.random.default_rng(seed)
    ways = np.full((LENGTH, 10, 4), np.nan)
    half = max(26.0, 4 + 1.5 * hidden)  # an object of 40 pixels is found as long as 16 are seen
    speed = 2 * (half - 4) / hidden
    for pair in range(5):
        y, reach = 10.0 + 106 * pair, half + rng.uniform(50, 90)
        places, sides = np.array([-1.0, 1.0]) * reach, np.array([1.0, -1.0])
        wait = 0
        for t in range(LENGTH):
            for k in (0, 1):
                ways[t, 2 * pair + k] = (460 + places[k], y + 12 * k, 40, 56)
            if wait:
                wait -= 1
                continue
            before = places.copy()
            places = places + sides * speed
            met = np.sign(before[0]) != np.sign(places[0])
            if met and rng.random() < 0.6:
                sides = -sides
                wait = int(rng.integers(0, max(1, hidden // 4)))
            out = np.abs(places) >= reach
            sides[out] = -np.sign(places[out])
    post = (int(480 - half), 0, int(2 * half), HEIGHT)
    return Scene(ways, [lambda _t: post], seed=seed)


def behind(hidden: int, seed: int, *, alike: bool = False) -> Scene:
    """Objects that go behind a post and come out; some stop, slow down or turn back there."""
    rng = np.random.default_rng(seed)
    count, ways = 8, np.full((LENGTH, 8, 4), np.nan)
    for i in range(count):
        speed, away = rng.uniform(2.5, 4), 1 if i % 2 else -1
        y, x = 20.0 + 64 * i, 480.0 - away * (speed * 60 + rng.uniform(0, 60))
        kind = i % 4  # goes on, stops behind it, turns back, changes its height
        start: int | None = None
        for t in range(LENGTH):
            ways[t, i] = (x - 20, y, 40, 56)
            if start is None and abs(x - 480) < 8:
                start = t
            inside = start is not None and t - start < hidden - 12
            if kind == 1 and inside:
                continue
            if kind == 2 and start is not None and t == start + max(1, (hidden - 12) // 2):
                away = -away
            step = 0.3 if kind == 2 and inside else 1.0
            x += away * speed * step
            if kind == 3 and inside:
                y += 0.4 * np.sign(240 - y)
            if not 0 <= x <= WIDTH:
                away = -away
    half = 28 + hidden // 2
    post = (480 - half, 0, 2 * half, HEIGHT)
    return Scene(ways, [lambda _t: post], alike=alike, seed=seed)


def scenes() -> dict[str, Scene]:
    """All of them by name; in those named `occlusion` and `meeting` objects hide."""
    rng = np.random.default_rng(7)
    pan = np.column_stack((40 * np.sin(np.arange(LENGTH) / 12), 12 * np.sin(np.arange(LENGTH) / 9)))
    panned = wander(12, rng)
    panned[:, :, :2] -= pan[:, None]
    return {
        "crossings": Scene(wander(20, rng), seed=1),
        "look-alikes": Scene(wander(12, rng), alike=True, seed=2),
        "pan": Scene(panned, pan=pan, seed=3),
        "200 objects": Scene(wander(200, rng, 2, 28), seed=4),
        **{f"occlusion {n}": behind(n, 10 + n) for n in (5, 15, 30, 60)},
        **{f"meeting {n}": meeting(n, 20 + n) for n in (5, 15, 30, 60)},
    }


def play(scene: Scene, specs: Sequence[str]) -> dict[str, tuple[TrackScores, float]]:
    """Scores, and microseconds for an object and frame, of each tracker.

    The tracker `truth` gives each detection its true id: what is lost then, the detector lost.
    """
    trackers = {spec: open_tracker(spec) for spec in specs if spec != TRUTH}
    results: dict[str, dict[int, tuple[npt.NDArray[np.int64], Floats]]] = {s: {} for s in specs}
    truth, spent, rng = {}, dict.fromkeys(specs, 0.0), np.random.default_rng(scene.seed)
    for t in range(LENGTH):
        image, seen = scene.draw(t), np.flatnonzero(scene.visible(t))
        boxes = scene.ways[t, seen]
        truth[t + 1] = (seen.astype(np.int64), boxes)
        found = rng.permutation(len(seen))[: len(seen) - (rng.random() < 0.5)]
        noisy = boxes[found] + rng.normal(0, 1, (len(found), 4))
        scores = rng.uniform(0.6, 1, len(found))
        if TRUTH in specs:
            results[TRUTH][t + 1] = (seen[found].astype(np.int64), noisy)
        for spec, tracker in trackers.items():
            meta = FrameMeta("", 0, t, 0, WIDTH, HEIGHT, inferred=True)
            kinds = np.zeros(len(found), int)
            meta.objects.append(Detections(noisy, scores, kinds, space=Space.FRAME), 1)
            start = time.process_time()
            tracker.update(image, meta)
            spent[spec] += time.process_time() - start
            ids = meta.objects.object_ids
            kept = ids != UNTRACKED_OBJECT_ID
            rects = meta.objects.rects[kept].astype(np.float64)
            results[spec][t + 1] = (ids[kept].astype(np.int64), rects)
    count = sum(len(ids) for ids, _ in truth.values())
    return {spec: (score_tracks(truth, results[spec]), 1e6 * spent[spec] / count) for spec in specs}


def made_model(folder: Path) -> Path:
    """A ReID model without weights: the colours of 4 x 2 parts of a crop."""
    from onnx import TensorProto, helper, save

    pool = helper.make_node(
        "AveragePool", ["image"], ["means"], kernel_shape=[8, 8], strides=[8, 8]
    )
    flat = helper.make_node("Flatten", ["means"], ["look"], axis=1)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, 32, 16])
    look = helper.make_tensor_value_info("look", TensorProto.FLOAT, ["n", 24])
    graph = helper.make_graph([pool, flat], "looks", [image], [look])
    opset = helper.make_opsetid("", 17)
    save(helper.make_model(graph, opset_imports=[opset], ir_version=8), str(folder / "looks.onnx"))
    return folder / "looks.onnx"


def picture(path: Path) -> None:
    """Write the picture of docs/tracking.md: ids before and after a meeting behind the post."""
    from PIL import Image, ImageDraw

    scene, rows = scenes()["meeting 5"], []
    with TemporaryDirectory() as folder:
        looks = f"reid={made_model(Path(folder))},reid_pixels=signed,reid_similarity=0.85"
        for title, spec in (("overlap", "iou"), ("overlap and looks", f"iou:{looks}")):
            tracker, shown = open_tracker(spec), []
            for t in range(60):
                frame, seen = scene.draw(t), np.flatnonzero(scene.visible(t))
                meta = FrameMeta("", 0, t, 0, WIDTH, HEIGHT, inferred=True)
                found = Detections(
                    scene.ways[t, seen], np.ones(len(seen)), np.zeros(len(seen), int),
                    space=Space.FRAME,
                )  # fmt: skip
                meta.objects.append(found, 1)
                tracker.update(frame, meta)
                image = Image.fromarray(np.ascontiguousarray(frame.planes[0][:, :, ::-1]))
                pen = ImageDraw.Draw(image)
                for obj in meta.objects:
                    if obj.object_id is not None and obj.object_id != UNTRACKED_OBJECT_ID:
                        box = [obj.left, obj.top, obj.left + obj.width, obj.top + obj.height]
                        pen.rectangle(box, outline="white", width=2)
                        pen.text((obj.left + 3, obj.top + 2), str(obj.object_id), "white",
                                 font_size=26, stroke_width=2, stroke_fill="black")  # fmt: skip
                pen.text((330, 300), f"{title}, frame {t}", "white", font_size=22)
                shown.append(np.asarray(image)[:330, 320:640])
            rows.append(np.hstack([shown[t] for t in PICTURED]))
    Image.fromarray(np.vstack(rows)).quantize(96).save(path, optimize=True)


def main(wanted: Sequence[str]) -> None:
    """Print a table: HOTA, IDF1, id switches and microseconds for each scene and tracker."""
    with TemporaryDirectory() as folder:
        model = made_model(Path(folder))
        looks = f"reid={model},reid_pixels=signed,reid_similarity=0.85"
        specs = {
            "true ids": TRUTH,
            "iou": "iou",
            "nvsort": "nvsort",
            "nvdcf-perf": "nvdcf-perf",
            "nvdcf-accuracy": "nvdcf-accuracy",
            "iou, ReID": f"iou:{looks}",
            "nvdcf-perf, ReID": f"nvdcf-perf:{looks}",
        }
        print("| scene | " + " | ".join(specs) + " |\n" + "|---" * (len(specs) + 1) + "|")
        for name, scene in scenes().items():
            if wanted and name not in wanted:
                continue
            table(name, scene, specs)
            if scene.ways.shape[1] > 150:  # the samples of NvDCF follow 150 targets at most
                roomy = {column: with_room(spec) for column, spec in specs.items()}
                table(f"{name}, room for 300", scene, roomy)


def with_room(spec: str) -> str:
    """Return a tracker of the original with room for 300 targets."""
    return f"{spec}{',' if ':' in spec else ':'}{ROOM}" if spec.startswith("nv") else spec


def table(name: str, scene: Scene, specs: dict[str, str]) -> None:
    """Print a row."""
    got = play(scene, list(specs.values()))
    cells = [
        f"{100 * s.hota:.1f} / {100 * s.idf1:.1f} / {s.switches} / {us:.0f}"
        for s, us in (got[spec] for spec in specs.values())
    ]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
