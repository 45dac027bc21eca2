"""Configs on data sets: figures, what counts, and what is refused."""

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace import ModelConfig, evaluate, load_dataset
from headrace.diagnose.evaluate import Dataset
from headrace.diagnose.evaluate.box_matching import Scored
from headrace.diagnose.evaluate.classification import best_attribute
from headrace.diagnose.evaluate.running import with_low_thresholds
from headrace.errors import ConfigError, HeadraceError, MediaError, MissingExtraError
from tests.diagnose.evaluate.conftest import BLUE, GREEN, RED
from tests.diagnose.evaluate.datasets.images import image, mask
from tests.diagnose.evaluate.test_average_precision import pycoco

SCENE = Path(__file__).parents[3] / "examples" / "conveyor"


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eval") / "conveyor"
    shutil.copytree(SCENE, folder)
    return folder


@pytest.fixture
def video(scene):
    found = load_dataset(scene / "truth.json", images=scene / "conveyor.mp4")
    return replace(found, images=found.images[:24])


def found_by(cfg, dataset):
    """The boxes of an ordinary run, in the order of the images."""
    found = []
    count = len(dataset.images) * dataset.step
    with headrace.open_pipeline(cfg, sources=dataset.video, limit=count) as pipeline:
        for frame, meta in pipeline:
            if frame.frame % dataset.step == 0:
                o = meta.objects
                boxes = np.asarray(o.rects, float).reshape(-1, 4)
                found.append(Scored(boxes, o.class_ids, np.asarray(o.confidences, float)))
    return found


class TestDetector:
    def test_the_demo_scene_as_pycocotools(self, scene, video):
        video = video.limited(8)
        assert video.step == 3
        cfg = ModelConfig.load(scene / "config_infer_primary.txt")
        lines = []
        report = evaluate(cfg, video, on_stage=lambda *a: lines.append(a), on_frame=lambda: None)
        truths = [p.truth for p in video.images]
        figures = report[0].scores.headline
        found = found_by(cfg.with_overrides(pre_cluster_threshold=0.001), video)
        stats = pycoco(truths, found, classes=6).stats
        assert figures["mAP50-95"] == pytest.approx(stats[0], abs=1e-6)
        assert figures["mAP50"] == pytest.approx(stats[1], abs=1e-6)
        assert figures["mAP large"] == pytest.approx(stats[5], abs=1e-6)
        assert figures["AR100"] == pytest.approx(stats[8], abs=1e-6)
        assert math.isnan(figures["mAP small"])
        assert lines == [("config_infer_primary.txt", 8)]
        assert report[0].images == 8
        assert report[0].fps > 0
        sure = sum(len(one.boxes) for one in found_by(cfg, video))
        at = report[0].scores.at_config
        crowded = sum(int(p.truth.crowd.sum()) for p in video.images)
        assert sure - crowded <= at.right + at.false <= sure
        assert [c.at_config.threshold for c in report[0].scores.classes] == [0.3] * 6

    def test_side_by_side(self, scene, video):
        cfg = ModelConfig.load(scene / "config_infer_primary.txt")
        report = evaluate([cfg, cfg.with_overrides(conf=0.9)], video, as_configured=True)
        low, high = (r.scores.headline for r in report.results)
        assert high["recall"] < low["recall"]
        assert high["mAP50"] < low["mAP50"]
        assert [r.name for r in report.results] == [
            "config_infer_primary.txt",
            "config_infer_primary.txt (2)",
        ]
        assert "above the config's own thresholds" in " ".join(map(str, report.notices))
        assert report.below({"mAP50": 2}) == [
            f"{r.name}: mAP50 {r.scores.headline['mAP50']:.4f} is below 2" for r in report.results
        ]
        assert report.below({"mAP50": 0}) == []
        assert report.below({"mAP small": 0})  # not known is below
        with pytest.raises(HeadraceError, match="there is no mIoU"):
            report.below({"mIoU": 0})

    def test_images_of_any_turn_and_lost_and_false_boxes(self, mean_config, boxes, tmp_path):
        """The box of the model is right on two images, wrong on one, false on another."""
        dataset = load_dataset(boxes(), images=tmp_path / "images")
        report = evaluate(mean_config(), dataset)
        scores = report[0].scores
        assert (scores.at_config.right, scores.at_config.false) == (2, 2)
        assert scores.at_config.missed == 1
        assert scores.confusion.counts.tolist() == [[2, 1], [2, 0]]
        assert [(w.place, int(w.missed.sum()), int(w.false.sum())) for w in scores.worst] == [
            (1, 1, 1),
            (2, 0, 1),
        ]
        # surest first: right, false, false, right: precision 1 to a third, then a half to two
        assert scores.headline["mAP50"] == pytest.approx((34 + 33 * 0.5) / 101)
        assert scores.classes[0].best.f1 == pytest.approx(4 / 7)  # with all four
        assert report[0].classes.by == "name"

    def test_what_cannot_be_used_is_left_out(self, mean_config, boxes, tmp_path):
        dataset = load_dataset(boxes(), images=tmp_path / "images")
        image(tmp_path / "images" / "2.png", (32, 32), RED)
        (tmp_path / "images" / "3.png").write_bytes(b"x")
        report = evaluate(mean_config(), dataset)
        assert report[0].images == 2
        text = " ".join(map(str, report.notices))
        assert (
            "1 images are not of the size in the truth and left out: 2.png (32x32, not 64x32)"
            in text
        )
        assert "images left out: 3.png" in text
        assert report[0].scores.headline["mAP50"] == 1

    def test_topk_is_named(self, mean_config, boxes, tmp_path):
        dataset = load_dataset(boxes(), images=tmp_path / "images")
        cfg = ModelConfig.load(mean_config(cluster_mode=2)).with_overrides(topk=3)
        notices = evaluate(cfg, dataset).notices
        assert any("topk=3 keeps at most 3 boxes" in n.sentence for n in notices)

    def test_clusters_are_counted_in_a_run_of_their_own(self, mean_config, boxes, tmp_path):
        dataset = load_dataset(boxes(), images=tmp_path / "images")
        cfg = ModelConfig.load(mean_config(cluster_mode=1)).with_overrides(conf=0.9)
        scores = evaluate(cfg, dataset)[0].scores
        assert (scores.at_config.right, scores.at_config.false) == (1, 0)
        assert scores.headline["mAP50"] > 0.4

    def test_masks_of_instances(self, mean_config, boxes, tmp_path):
        """The model's mask fills its box: that of the first image, and half of the last."""
        parser = """
def masks(layers, network, params):
    found = parse(layers, network, params)
    return Detections(found.boxes, found.scores, found.class_ids, masks=[np.ones((4, 4))])
"""
        cfg = mean_config(parser=parser, network_type=3, parse_bbox_func_name=None,
                          parse_bbox_instance_mask_func_name="masks",
                          output_instance_mask=1, segmentation_threshold=0.5)  # fmt: skip
        rows = [
            (1, [16, 8, 32, 16], [[16, 8, 48, 8, 48, 24, 16, 24]]),
            (4, [8, 16, 16, 32], [[8, 16, 16, 16, 16, 48, 8, 48]]),
        ]
        annotations = [
            {"image_id": i, "category_id": 1, "bbox": b, "area": 512, "segmentation": mask}
            for i, b, mask in rows
        ]
        dataset = load_dataset(boxes(annotations=annotations), images=tmp_path / "images")
        assert dataset.has_masks
        figures = evaluate(cfg, dataset)[0].scores.headline
        # 4 is the surest; 3 and 2, where nothing is, come before 1
        assert figures["mAP50"] == pytest.approx((51 + 50 * 0.5) / 101)
        assert figures["mask mAP50"] == figures["mAP50"]
        # from an IoU of 0.55 on, only the mask of 1 is right: the last of four
        tenth = (figures["mask mAP50"] + 9 * 51 * 0.25 / 101) / 10
        assert figures["mask mAP50-95"] == pytest.approx(tenth)

    def test_turned_boxes_are_named(self, mean_config, boxes, tmp_path):
        parser = """
def turned(layers, network, params):
    found = parse(layers, network, params)
    return Detections(found.boxes, found.scores, found.class_ids, angles=[0.5])
"""
        cfg = mean_config(parser=parser, parse_bbox_func_name="turned")
        dataset = load_dataset(boxes(), images=tmp_path / "images")
        assert any("boxes are turned" in str(n) for n in evaluate(cfg, dataset).notices)

    def test_faint_boxes_are_no_reason_to_warn(self, mean_config, boxes, tmp_path):
        parser = """
def faint(layers, network, params):
    scores = np.full(400, 0.01) if params.min_threshold < 0.01 else np.full(400, 0.9)
    return Detections(np.random.default_rng(0).uniform(4, 9, (400, 4)), scores, [0] * 400)
"""
        cfg = mean_config(parser=parser, parse_bbox_func_name="faint")
        dataset = load_dataset(boxes(), images=tmp_path / "images")
        rules = {n.code for n in evaluate(cfg, dataset).notices}
        assert "too-many-boxes" not in rules
        rules = {n.code for n in evaluate(cfg, dataset, as_configured=True).notices}
        assert "too-many-boxes" in rules

    def test_a_parser_with_a_threshold_of_its_own_is_named(self, mean_config, boxes, tmp_path):
        parser = """
def sure(layers, network, params):
    return Detections([[4 * i, 4, 3, 3] for i in range(8)], [0.4] * 8, [0] * 8)
"""
        cfg = mean_config(parser=parser, parse_bbox_func_name="sure")
        dataset = load_dataset(boxes(), images=tmp_path / "images")
        notices = [str(n) for n in evaluate(cfg, dataset).notices]
        assert any("no box has a confidence below 0.40" in n for n in notices)

    def test_a_class_that_is_switched_off_stays_so(self, mean_config):
        cfg = ModelConfig.load(mean_config()).with_overrides(
            **{"pre-cluster-threshold": 0.4, "post-cluster-threshold": 0.5}
        )
        low = with_low_thresholds(cfg).all_classes
        assert (low.pre_cluster_threshold, low.post_cluster_threshold) == (0.001, 0)
        off = cfg.with_overrides(pre_cluster_threshold=1.0)
        assert with_low_thresholds(off).all_classes.pre_cluster_threshold == 1

    def test_the_extra_is_named(self, mean_config, boxes, tmp_path, monkeypatch):
        dataset = load_dataset(boxes(), images=tmp_path / "images")
        monkeypatch.setitem(__import__("sys").modules, "faster_coco_eval", None)
        with pytest.raises(MissingExtraError, match="pip install 'faster-coco-eval>="):
            evaluate(mean_config(), dataset)


class TestClassifier:
    @pytest.fixture
    def folders(self, tmp_path):
        for name, color in (("Red", RED), ("green", GREEN), ("blue", BLUE), ("grey", (9, 9, 9))):
            image(tmp_path / "kinds" / name / "a.png", color=color)
        image(tmp_path / "kinds" / "blue" / "b.png", color=(20, 250, 20))
        return tmp_path / "kinds"

    def test_accuracy_confusion_and_worst(self, classifier, folders):
        report = evaluate(classifier, load_dataset(folders))
        scores = report[0].scores
        assert scores.top1 == 0.75  # grey is no class of the model
        assert scores.top5 == 1
        assert scores.headline["mean of classes"] == pytest.approx((1 + 1 + 0.5) / 3)
        assert (scores.answered, scores.right_of_answered) == (0.25, 0)
        (wrong,) = scores.worst
        assert (wrong.true, wrong.found) == ("blue", "green")
        assert wrong.confidence == pytest.approx(250 / 255, abs=1e-3)
        assert scores.confusion.mistakes(3) == ["blue taken for green: 1"]
        assert report[0].classes.only_dataset == ("grey",)

    def test_a_closing_semicolon_adds_no_class(self, classifier, folders, tmp_path):
        (tmp_path / "labels.txt").write_text("red;green;blue;\n")
        scores = evaluate(classifier, load_dataset(folders))[0].scores
        assert (scores.top1, scores.top5) == (0.75, 1)

    def test_a_model_of_several_outputs_is_scored_by_the_one_that_fits(self):
        dataset = Dataset("d", "classes", ("left", "right"), ())
        found, notices = best_attribute([["red", "blue"], ["Left", "Right"]], dataset, "c.txt")
        assert found == 1
        assert "2 outputs: number 1 is scored (Left, Right)" in notices[0].sentence
        assert best_attribute([["red"]], dataset, "c.txt") == (0, [])

    def test_secondary_models_take_whole_images(self, classifier, folders):
        cfg = classifier.with_overrides(process_mode=2, operate_on_gie_id=1)
        report = evaluate(cfg, load_dataset(folders))
        assert report[0].scores.top1 == 0.75
        assert any("taken as an object, whole" in n.sentence for n in report.notices)

    def test_without_labels_the_order_decides(self, classifier, folders):
        shutil.rmtree(folders / "grey")
        report = evaluate(classifier.with_overrides(labelfile_path=None), load_dataset(folders))
        # blue, green, red is the order of the folders
        assert report[0].scores.top1 == pytest.approx(1 / 4)
        assert report[0].classes.by == "index"


class TestSegmentation:
    def test_pixels_and_images(self, segmenter, tmp_path):
        image(tmp_path / "images" / "a.png", (8, 4), RED)
        image(tmp_path / "images" / "b.png", (4, 8), GREEN)
        mask(tmp_path / "masks" / "a.png", [[0] * 4 + [255] * 4] * 4)
        mask(tmp_path / "masks" / "b.png", [[1] * 4] * 4 + [[2] * 4] * 4, palette=True)
        dataset = load_dataset(tmp_path / "masks", images=tmp_path / "images")
        report = evaluate(segmenter, dataset)
        scores = report[0].scores
        assert [c.name for c in scores.classes] == ["red", "green", "blue"]
        assert [c.pixels for c in scores.classes] == [16, 16, 16]
        assert [c.iou for c in scores.classes] == [1, 0.5, 0]
        assert scores.miou == 0.5
        assert scores.headline["pixel accuracy"] == pytest.approx(32 / 48)
        (worst,) = scores.worst
        assert (worst.place, worst.right) == (1, 0.5)
        assert worst.found.shape == (8, 4)

    def test_a_letterbox_is_no_part_of_the_image(self, segmenter, tmp_path):
        image(tmp_path / "images" / "a.png", (8, 4), RED)
        mask(tmp_path / "masks" / "a.png", [[0] * 8] * 4)
        dataset = load_dataset(tmp_path / "masks", images=tmp_path / "images")
        for symmetric in (False, True):
            cfg = segmenter.with_overrides(maintain_aspect_ratio=True, symmetric_padding=symmetric)
            assert evaluate(cfg, dataset)[0].scores.headline["pixel accuracy"] == 1


class TestRefused:
    def test_models_and_data_sets_that_do_not_fit(self, mean_config, classifier, boxes, tmp_path):
        dataset = load_dataset(boxes(), images=tmp_path / "images")
        with pytest.raises(ConfigError, match="do not fit\n  expected a folder of images"):
            evaluate(classifier, dataset)
        other = classifier.with_overrides(network_type=100)
        with pytest.raises(ConfigError, match="gives nothing that could be scored"):
            evaluate(other, dataset)
        with pytest.raises(HeadraceError, match="there is no config"):
            evaluate([], dataset)

    def test_no_image_can_be_used(self, mean_config, boxes, tmp_path):
        dataset = load_dataset(boxes(), images=tmp_path / "images")
        for i in (1, 2, 3, 4):
            image(tmp_path / "images" / f"{i}.png", (7, 7))
        with pytest.raises(MediaError, match=r"no image can be used, as 1.png \(7x7"):
            evaluate(mean_config(), dataset)
