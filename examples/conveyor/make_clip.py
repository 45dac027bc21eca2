"""Render conveyor.mp4 and its ground truth truth.json (COCO) from one seed.

python examples/conveyor/make_clip.py
"""

from __future__ import annotations

import argparse
import json
from fractions import Fraction
from pathlib import Path

import av
from conveyor_scene import CLASSES, FPS, HEIGHT, WIDTH, Scene, Truth

FOLDER = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=574, help="0 to 999 are never trained on")
    parser.add_argument("--first", type=int, default=180, help="frame of the scene to begin with")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--crf", type=int, default=21, help="H.264 quality, less is better")
    parser.add_argument("--out", type=Path, default=FOLDER)
    args = parser.parse_args()
    scene, count = Scene(args.seed), round(args.seconds * FPS)
    images, annotations = [], []
    with av.open(args.out / "conveyor.mp4", "w", options={"movflags": "+faststart"}) as file:
        stream = file.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.time_base = Fraction(1, FPS)
        stream.options = {"crf": str(args.crf), "preset": "veryslow", "threads": "2"}
        for i in range(count):
            image, truths = scene.frame(args.first + i)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = i, Fraction(1, FPS)
            file.mux(stream.encode(frame))
            images.append({"id": i + 1, "file_name": f"{i:06d}", "width": WIDTH, "height": HEIGHT})
            annotations += [_annotation(truth, i + 1) for truth in truths]
        file.mux(stream.encode())
    for number, annotation in enumerate(annotations):
        annotation["id"] = number + 1
    document = {
        "info": {
            "description": "Headrace demo scene, exact ground truth of conveyor.mp4",
            "license": "Apache-2.0",
            "seed": args.seed,
            "first_frame": args.first,
        },
        "categories": [{"id": i + 1, "name": name} for i, name in enumerate(CLASSES)],
        "images": images,
        "annotations": annotations,
    }
    lists = {key: document.pop(key) for key in ("images", "annotations")}
    text = json.dumps(document)[:-1]
    for key, rows in lists.items():
        text += f', "{key}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]"
    (args.out / "truth.json").write_text(text + "}\n")


def _annotation(truth: Truth, image: int) -> dict[str, object]:
    """COCO with the parcel's number, code and visible share; `iscrowd` where too little shows."""
    return {
        "id": 0,
        "image_id": image,
        "category_id": truth.class_id + 1,
        "bbox": [int(v) for v in truth.box],
        "area": int(truth.box[2] * truth.box[3]),
        "iscrowd": int(truth.ignored),
        "track_id": truth.parcel,
        "visible": round(truth.visible, 3),
        "code": truth.code,
        "readable": truth.readable,
    }


if __name__ == "__main__":
    main()
