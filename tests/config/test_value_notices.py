"""Settings that another one makes useless, and keys without effect: each told, each only then."""

from __future__ import annotations

import re

import pytest

from headrace.config import ModelConfig
from headrace.config import value_notices as rules
from headrace.config.keys import PROPERTY_KEYS
from tests.config.conftest import Load

BASE = "gie-unique-id=1\nnum-detected-classes=2\ncluster-mode=2\nonnx-file=a.onnx\n"
SCALE = "net-scale-factor=0.5\n"


def told(cfg: ModelConfig) -> list[str]:
    return [n.sentence for n in cfg.notices]


def test_a_config_without_oddities_has_no_notices(load: Load) -> None:
    cfg = load(
        BASE + "custom-lib-path=a.so\nparse-bbox-func-name=F\nlabelfile-path=l.txt\n"
        "net-scale-factor=0.0039\noffsets=1;2;3\nmaintain-aspect-ratio=1\nsymmetric-padding=1\n"
        "[class-attrs-all]\npre-cluster-threshold=0.3\nnms-iou-threshold=0.5\ntopk=100\n"
    )
    assert told(cfg) == []


@pytest.mark.parametrize(
    ("level", "lines", "words"),
    [
        ("warning", "mean-file=m.ppm\noffsets=1;2;3", "mean-file wins"),  # X5
        ("info", "engine-create-func-name=F", "not called: onnx-file is used"),
        ("warning", "symmetric-padding=1", "without maintain-aspect-ratio"),  # X7
        ("warning", "net-scale-factor=0", "1 is used"),  # X8
        ("warning", "net-scale-factor=-1\noffsets=1;2;3", "offsets are not applied"),
        ("info", "network-mode=1", "the original builds FP16"),  # X9
        ("warning", "tlt-encoded-model=m", "needs tlt-model-key"),  # X10
        ("warning", "model-file=m", "needs proto-file"),  # X11
        ("warning", "model-file=m\nproto-file=p", "needs output-blob-names"),
        ("warning", "uff-file=u", "needs uff-input-blob-name"),
        ("warning", "network-type=3", "needs cluster-mode=4"),  # X12
        ("warning", "output-instance-mask=1", "needs cluster-mode=4"),
        ("info", "use-dla-core=1", "without enable-dla"),  # X13
        ("warning", "classifier-async-mode=1", "for classifiers (network-type=1)"),  # X14
        ("warning", "network-input-order=1", "needs infer-dims"),  # X15
        (
            "warning",  # X16
            "input-tensor-from-meta=1\noffsets=1;2;3",
            "not used with input-tensor-from-meta=1: offsets",
        ),
        ("info", "auto-inc-mem=0\noutput-tensor-meta=1", "can stall"),  # X17
        ("info", "disable-output-host-copy=1", "parsers get main memory"),  # X18
        ("warning", "operate-on-gie-id=1", "process-mode=2 is missing"),  # X19
        ("warning", "operate-on-class-ids=1", "write filter-out-class-ids"),
        (
            "warning",
            "operate-on-gie-id=1\noperate-on-class-ids=1",
            "process-mode=2 is missing",
        ),
        ("warning", "process-mode=2\ninterval=1", "interval is not used"),
        ("info", "network-type=1\n[class-attrs-all]", "does not use it"),  # X20
        ("warning", "overwrite-input-tensor=1", "needs ip-tensor-file"),  # X21
        ("warning", "overwrite-output-tensor=1", "needs op-tensor-files"),
        ("warning", "offsets=1;2", "2 offsets for 3 channels"),
        ("warning", "offsets=1;2;3\nmodel-color-format=2", "3 offsets for 1 channels"),
        ("warning", "num-detected-classes=0", "every box is dropped"),
        ("warning", "[class-attrs-all]\npre-cluster-threshold=1", "no box can pass"),
        ("warning", "[class-attrs-all]\npre-cluster-threshold=0", "every candidate counts"),
        ("warning", "[class-attrs-1]\nnms-iou-threshold=0", "only the best stays"),
        ("warning", "cluster-mode=1", "skips DBSCAN while minBoxes is 0"),
        ("warning", "cluster-mode=1", "every raw box goes through"),
        ("warning", "cluster-mode=1\n[class-attrs-all]\nminBoxes=2", "no box ever has a neighbour"),
        ("warning", "cluster-mode=3", "minBoxes is 0: NMS alone runs, as with cluster-mode=2"),
        ("warning", "cluster-mode=3\n[class-attrs-all]\nminBoxes=2", ", and NMS does the work"),
        ("info", "[class-attrs-all]\neps=0.5", "mode 2, which is NMS (DBSCAN is 1)"),
        ("warning", "cluster-mode=0", "NMS with IoU 0.5 and the 20 best"),
        ("warning", "parse-classifier-func-name=F", "it is for network-type 1"),
        ("warning", "network-type=1\nparse-bbox-func-name=F", "it is for network-type 0"),
    ],
)
def test_told_and_placed(load: Load, level: str, lines: str, words: str) -> None:
    assert not any(words in message for message in told(load(BASE)))
    cfg = load(BASE + lines + "\n")
    (notice,) = [n for n in cfg.notices if words in n.sentence]
    assert notice.level == level
    assert notice.where is not None
    assert "model.txt" in notice.where


def test_absent_cluster_mode_is_for_the_record_only(load: Load) -> None:
    text = BASE.replace("cluster-mode=2\n", "") + SCALE
    (notice,) = load(text).notices
    assert (notice.level, "cluster-mode is absent" in notice.sentence) == ("info", True)
    same = load(text + "[class-attrs-all]\ntopk=20\nnms-iou-threshold=0.5\n")
    assert [n.level for n in same.notices] == ["info"]  # what runs is what is asked for
    (notice,) = load(text + "[class-attrs-all]\ntopk=5\n").notices
    assert (notice.level, "topk of this file lose" in notice.sentence) == ("warning", True)


def test_missing_id_is_told(load: Load) -> None:
    cfg = load(BASE.replace("gie-unique-id=1\n", "") + SCALE)
    assert [n.level for n in cfg.notices] == ["info"]
    assert "gie-unique-id is absent" in told(cfg)[0]


def test_idle_keys_are_told_once_and_together(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    idle = "output-io-formats=a:fp32:chw\nint8-calib-file=c\nclassifier-threshold=0\n"
    without = ("output_io_formats", "int8_calib_file", "classifier_threshold")
    monkeypatch.setattr(rules, "_acts", lambda cfg, name: name not in without)
    cfg = load(BASE + SCALE + idle)
    (notice,) = cfg.notices
    assert notice.level == "warning"
    assert "output-io-formats (line 7)" in notice.sentence
    assert "int8-calib-file (line 8)" in notice.sentence
    assert "classifier-threshold" not in notice.sentence  # its default: nothing was asked for


def test_keys_that_do_not_apply_say_why(load: Load) -> None:
    cfg = load(BASE + SCALE + "workspace-size=10\ntensor-meta-pool-size=4\nauto-inc-mem=1\n")
    assert [n.level for n in cfg.notices] == ["info", "info"]
    first, second = cfg.notices
    assert "workspace-size has no effect: the runtime takes the memory it needs" in first.sentence
    assert str(first.where).endswith("model.txt:7")
    assert "there is no pool" in second.sentence


def test_what_a_tensor_of_the_caller_makes_useless_is_said_once(load: Load) -> None:
    cfg = load(BASE + SCALE + "input-tensor-from-meta=1\ninterval=2\nscaling-compute-hw=1\n")
    (notice,) = cfg.notices
    assert "net-scale-factor, scaling-compute-hw, interval" in notice.sentence


SAMPLE = {
    "path": "x",
    "text": "x",
    "flag": "1",
    "integer flag": "1",
    "integer": "7",
    "number": "0.7",
    "percentage": "7",
    "list of integers": "1",
    "list of texts": "a",
    "list of paths": "a",
}


@pytest.mark.parametrize(
    "name", [k.name for k in PROPERTY_KEYS.values() if k.field and not (k.acts and not k.acts_for)]
)
def test_no_key_is_ignored_in_silence(load: Load, name: str) -> None:
    """Each key that nothing acts on is named by some notice when a file sets it."""
    key = PROPERTY_KEYS[name]
    value = SAMPLE[key.kind.value]
    if key.enum is not None:
        value = str(int(next(m for m in key.enum if m != key.default)))
    if name == "auto-inc-mem":
        value = "0"
    cfg = load(BASE + f"{name}={value}\n")
    assert getattr(cfg, key.field or "") != key.default
    assert any(re.search(rf"\b{name}\b", message) for message in told(cfg))


def test_an_absent_scale_is_for_the_record(load: Load) -> None:
    cfg = load(BASE)
    (notice,) = cfg.notices
    assert notice.level == "info"
    assert "up to 255" in notice.sentence
