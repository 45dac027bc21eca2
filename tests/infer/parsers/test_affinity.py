"""Heat maps and part-affinity fields: scenes of bodies with exact joints, found again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ParserError
from headrace.infer.parsers.affinity import _OPENPOSE, _TRT_POSE
from headrace.meta.skeletons import BODY
from tests.profiles import examples

SIZE = (256, 224)  # of the network input
# A standing person: x, y of the 17 points of COCO and the neck, in 0..1 of its box.
STANDING = np.array(
    [(0.5, 0.06), (0.57, 0.02), (0.43, 0.02), (0.66, 0.05), (0.34, 0.05), (0.78, 0.2), (0.22, 0.2),
     (0.92, 0.36), (0.08, 0.36), (1, 0.52), (0, 0.52), (0.66, 0.54), (0.34, 0.54), (0.68, 0.77),
     (0.32, 0.77), (0.7, 1), (0.3, 1), (0.5, 0.19)]
)  # fmt: skip


def maps(bodies, topology, cell, field_cell):
    """Maps of points as Gaussians, fields as bands of unit vectors along limbs; as trained.

    Args:
        bodies: (N, 18, 3) x, y in pixels of the input and score, 0 for a point out of sight.
        topology: of the model.
        cell, field_cell: pixels of a cell of the maps, and of the fields.
    """
    y, x = (np.mgrid[: SIZE[1] // cell, : SIZE[0] // cell] + 0.5) * cell
    heat = np.zeros((len(topology.order), *x.shape), "f4")
    for body in bodies:
        for place, kind in enumerate(topology.order):
            px, py, score = body[kind]
            blob = score * np.exp(-((x - px) ** 2 + (y - py) ** 2) / (2 * (1.2 * cell) ** 2))
            heat[place] = np.maximum(heat[place], blob)
    y, x = (np.mgrid[: SIZE[1] // field_cell, : SIZE[0] // field_cell] + 0.5) * field_cell
    fields = np.zeros((2 * len(topology.limbs), *x.shape), "f4")
    for body in bodies:
        for k, (a, b) in enumerate(topology.limbs):
            if not body[a, 2] or not body[b, 2]:
                continue
            start, line = body[a, :2], body[b, :2] - body[a, :2]
            length = np.linalg.norm(line)
            ux, uy = line / length
            along = (x - start[0]) * ux + (y - start[1]) * uy
            across = np.abs((x - start[0]) * uy - (y - start[1]) * ux)
            band = (along > -cell) & (along < length + cell) & (across < cell)
            parts = (uy, ux) if topology.y_first else (ux, uy)
            for part, value in enumerate(parts):
                fields[2 * k + part][band] = value
    return heat, fields


def scene(seed, count):
    """Persons beside each other, each with some points out of sight."""
    rng = np.random.default_rng(seed)
    bodies = np.zeros((count, 18, 3), "f4")
    for i, body in enumerate(bodies):
        width, height = rng.uniform(48, 58), rng.uniform(140, 190)
        body[:, :2] = STANDING * (width, height) + (12 + 80 * i, rng.uniform(8, 30))
        body[:, 2] = rng.uniform(0.5, 1, 18)
        # With nose and shoulders gone, the rest of a face would be a body of its own.
        body[rng.choice([*range(1, 5), *range(7, 17)], 3, replace=False), 2] = 0
        body[body[:, 2] == 0] = 0
    return bodies


def connected(body, limbs):
    """Points that limbs between visible points lead to from the neck."""
    reached = {17}
    for _ in limbs:
        for a, b in limbs:
            if body[a, 2] and body[b, 2] and (a in reached) != (b in reached):
                reached |= {a, b}
    return sorted(reached)


def same_bodies(found, bodies, limbs, atol):
    assert len(found) == len(bodies)
    places = found.keypoints[:, 17, 0].argsort()
    for points, box, score, body in zip(
        found.keypoints[places], found.boxes[places], found.scores[places], bodies, strict=True
    ):
        kept = connected(body, limbs)
        wanted = np.zeros_like(body)
        wanted[kept] = body[kept]
        np.testing.assert_allclose(points[:, :2], wanted[:, :2], atol=atol)
        np.testing.assert_allclose(points[:, 2], wanted[:, 2], atol=0.2)
        low, high = points[kept, :2].min(axis=0), points[kept, :2].max(axis=0)
        np.testing.assert_allclose(box, [*low, *(high - low)], rtol=1e-5)
        assert score == pytest.approx(points[kept, 2].mean())


@settings(max_examples=examples(12))
@given(seed=st.integers(0, 1 << 30), count=st.integers(0, 3), fields_first=st.booleans())
def test_trt_pose(parse, seed, count, fields_first):
    bodies = scene(seed, count)
    outputs = maps(bodies, _TRT_POSE, 4, 4)
    found = parse("HeadraceParseTrtPose", outputs[::-1] if fields_first else outputs, size=SIZE)
    same_bodies(found, bodies, _TRT_POSE.limbs, 0.6)


@settings(max_examples=examples(8))
@given(seed=st.integers(0, 1 << 30), last=st.booleans())
def test_openpose(parse, seed, last):
    bodies = scene(seed, 3)
    heat, fields = maps(bodies, _OPENPOSE, 4, 4)
    heat = np.concatenate([heat, 1 - heat.max(axis=0, keepdims=True)])  # the background
    if last:
        heat, fields = heat.transpose(1, 2, 0), fields.transpose(1, 2, 0)
    found = parse("HeadraceParseOpenPose", [heat, fields], size=SIZE)
    same_bodies(found, bodies, _OPENPOSE.limbs, 0.6)


def test_bodyposenet_has_finer_fields_than_maps(parse):
    bodies = scene(5, 2)
    heat, fields = maps(bodies, _OPENPOSE, 8, 2)
    heat = np.concatenate([heat, 1 - heat.max(axis=0, keepdims=True)])
    outputs = {
        "conv2d_transpose_1/BiasAdd:0": fields.transpose(1, 2, 0),
        "heatmap_out/BiasAdd:0": heat.transpose(1, 2, 0),
    }
    found = parse("HeadraceParseOpenPose", outputs, size=SIZE)
    # Points of a face are nearer than two cells of 8 pixels: they are looked at by their neck.
    places = found.keypoints[:, 17, 0].argsort()
    np.testing.assert_allclose(found.keypoints[places, 17, :2], bodies[:, 17, :2], atol=1)


def test_crossed_arms_stay_with_their_bodies(parse):
    bodies = scene(0, 2)
    bodies[:, :, 2] = 0.9
    for i, body in enumerate(bodies):
        body[:, :2] = STANDING * (50, 170) + (60 + 70 * i, 20)
    # the left arm of one lies across the right arm of the other
    bodies[0, 9, :2], bodies[1, 10, :2] = bodies[1, 8, :2] + (2, 20), bodies[0, 7, :2] + (-2, 24)
    found = parse("HeadraceParseTrtPose", maps(bodies, _TRT_POSE, 4, 4), size=SIZE)
    same_bodies(found, bodies, _TRT_POSE.limbs, 1.0)


def test_points_alone_are_no_body(parse):
    bodies = scene(1, 1)
    heat, fields = maps(bodies, _TRT_POSE, 4, 4)
    assert len(parse("HeadraceParseTrtPose", [heat, fields * 0], size=SIZE)) == 0
    assert len(parse("HeadraceParseTrtPose", [heat, -fields], size=SIZE)) == 0


def test_noise_and_odd_numbers_end(parse):
    rng = np.random.default_rng(0)
    heat, fields = rng.random((18, 56, 64), "f4"), rng.normal(size=(42, 56, 64)).astype("f4")
    heat[0, :9], fields[3, :9] = np.nan, np.inf
    found = parse("HeadraceParseTrtPose", [heat, fields], size=SIZE)
    assert np.isfinite(found.boxes).all()
    assert np.isfinite(found.keypoints).all()


def test_other_maps_are_refused(parse):
    with pytest.raises(ParserError, match="HeadraceParseTrtPose"):
        parse("HeadraceParseTrtPose", [np.zeros((18, 8, 8), "f4"), np.zeros((38, 8, 8), "f4")])


def test_the_skeleton_is_that_of_the_fields():
    assert len(BODY.bones) == 21
    assert {BODY.names[17]} == {"neck"}
    assert len(set(map(frozenset, _OPENPOSE.limbs))) == 19
