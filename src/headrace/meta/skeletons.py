"""Names and bones of the sets of keypoints that pose and face models share."""

from __future__ import annotations

from headrace._core.plain_record import PlainRecord

VISIBLE = 0.5
"""Points of a lower score are not drawn, and COCO files call them hidden."""

Bones = tuple[tuple[int, int], ...]
"""Pairs of points that a line joins, counted from 0."""


class Skeleton(PlainRecord, frozen=True):
    """A set of keypoints.

    Attributes:
        names: of each point, in order.
        bones: pairs of points that a line joins; none for landmarks that stand alone.
    """

    names: tuple[str, ...]
    bones: Bones = ()


# Source: the person category of COCO's keypoint task.
PERSON = Skeleton(
    (
        "nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder",
        "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist", "left_hip",
        "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle",
    ),
    (
        (15, 13), (13, 11), (16, 14), (14, 12), (11, 12), (5, 11), (6, 12), (5, 6), (5, 7), (6, 8),
        (7, 9), (8, 10), (1, 2), (0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6),
    ),
)  # fmt: skip

# Source: the landmarks of WIDER FACE, which RetinaFace, SCRFD and the YOLO face models learn.
FACE = Skeleton(("left_eye", "right_eye", "nose", "left_mouth_corner", "right_mouth_corner"))

# Source: human_pose.json of trt_pose, whose fields have the order of these limbs.
BODY = Skeleton(
    (*PERSON.names, "neck"),
    (
        (15, 13), (13, 11), (16, 14), (14, 12), (11, 12), (5, 7), (6, 8), (7, 9), (8, 10), (1, 2),
        (0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (17, 0), (17, 5), (17, 6), (17, 11),
        (17, 12),
    ),
)  # fmt: skip

KNOWN = {len(skeleton.names): skeleton for skeleton in (PERSON, FACE, BODY)}
"""Number of points -> skeleton."""
