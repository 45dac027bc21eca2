"""Another model takes over while the pipeline runs; no frame is lost.

python update_model.py
"""

from __future__ import annotations

from pathlib import Path

import headrace

SCENE = "../conveyor/"


def main(at: int = 20, limit: int = 120) -> list[tuple[int, set[str]]]:
    """(frame number, labels on it) of every frame."""
    pipeline = headrace.open_pipeline(
        SCENE + "config_infer_primary.txt", sources=SCENE + "conveyor.mp4", limit=limit
    )
    detector = pipeline.models[0]
    seen = []
    for frame, meta in pipeline:
        seen.append((frame.frame, {obj.label for obj in meta.objects}))
        if frame.frame == at:
            # loaded in another thread; it takes over between two batches
            updater = detector.update_model(config="config_infer_update.txt", on_updated=told)
            updater.wait()  # for this example: a real one goes on meanwhile
    return seen


def told(status: int, path: Path) -> None:
    print(f"{path}: {'takes over' if status == 0 else 'was refused, the old model goes on'}")


if __name__ == "__main__":
    before: set[str] = set()
    for number, labels in main():
        if labels and not labels & before:
            print(f"from frame {number} on: {', '.join(sorted(labels))}")
        before = labels or before
