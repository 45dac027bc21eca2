"""From INI text to a ModelConfig: values, order, legacy keys, groups, messages."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.config import ClassAttrs, ClusterMode, ModelConfig, NetworkType, TensorOrder
from headrace.config.document import ConfigProblemsError
from headrace.config.pipeline_files import load_pipeline
from headrace.config.reading import MAX_BYTES
from headrace.errors import ConfigError, ModelError
from tests.config.conftest import Load


def messages(cfg: ModelConfig) -> list[str]:
    return [n.sentence for n in cfg.notices]


def said(cfg: ModelConfig, *words: str) -> bool:
    return any(all(w in str(n) for w in words) for n in cfg.notices)


def test_the_error_of_the_house(load: Load, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load("gpu-id=0\ncluster-mode=5\n")
    assert str(caught.value) == (
        f"{tmp_path}/model.txt:3: cluster-mode=5 is not a clustering mode.\n"
        "  expected one of 0 (group rectangles), 1 (DBSCAN), 2 (NMS), 3 (DBSCAN + NMS), 4 (none)\n"
        "  your parser already returns suppressed boxes? then 4 is what you want."
    )


def test_all_errors_at_once_in_the_order_of_lines(load: Load) -> None:
    with pytest.raises(ConfigProblemsError) as caught:
        load("batch-size=0\nnonsense\nnetwork-mode=4\n[class-attrs-all]\ntopk=-1\n")
    lines = [p.where.rpartition(":")[2] for p in caught.value.problems if p.where]
    assert lines == ["2", "3", "4", "6"]
    assert "4 problems" in str(caught.value)


def test_a_flood_of_errors_is_cut(load: Load) -> None:
    with pytest.raises(ConfigProblemsError) as caught:
        load("nonsense\n" * 500)
    assert len(caught.value.problems) == 500
    assert str(caught.value).endswith("... and 480 more")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gie-unique-id=0", "1 or more"),
        ("gie-unique-id=-3", "1 or more"),
        ("process-mode=0", "1 (primary, whole frames), 2 (secondary, objects found upstream)"),
        ("interval=-1", "0 or more"),
        ("batch-size=0", "1 to 1024"),
        ("batch-size=1025", "1 to 1024"),
        ("network-type=4", "100 (other"),
        ("uff-input-order=3", "2 (NC)"),
        ("network-mode=4", "3 (BEST"),
        ("infer-dims=3;640", "3 integers"),
        ("infer-dims=3;640;-1", "3 integers"),
        ("model-color-format=3", "2 (GRAY)"),
        ("offsets=1;2;3;4;5", "0 to 4 numbers"),
        ("offsets=1;nan;3", "numbers"),
        ("network-input-order=2", "1 (NHWC)"),
        ("scaling-filter=7", "6 (default"),
        ("scaling-compute-hw=3", "2 (VIC"),
        ("cluster-mode=-1", "4 (none)"),
        ("classifier-threshold=-0.1", "0 or more"),
        ("segmentation-threshold=-1", "0 or more"),
        ("segmentation-output-order=2", "1 (NHWC)"),
        ("input-object-min-width=-1", "0 or more"),
        ("operate-on-class-ids=0;-1", "0 or more"),
        ("num-detected-classes=-1", "0 to 65536"),
        ("num-detected-classes=2000000000", "0 to 65536"),
        ("net-scale-factor=nan", "finite"),
        ("net-scale-factor=1e999", "finite"),
        ("input-dims=1;2;3;3", "2 (NC)"),
        ("input-dims=1;2;3", "4 integers"),
        ("is-classifier=2", "true, false, 1 or 0"),
        ("max-gpu-mem-per=90.5", "integer"),
        ("custom-lib-abi=32", "auto, 24, 28"),
        ("onnx-file=a\x07b", "path"),
        ("parse-bbox-func-name=\\q", "backslash"),
        ("[class-attrs-all]\nnms-iou-threshold=1.5", "from 0 to 1"),
        ("[class-attrs-all]\npre-cluster-threshold=-1", "0 or more"),
        ("[class-attrs-all]\npre-cluster-threshold=nan", "0 or more"),
        ("[class-attrs-all]\nthreshold=-1", "0 or more"),
        ("[class-attrs-all]\nborder-color=1;0;0", "4 numbers"),
        ("[class-attrs-all]\ndetected-max-h=x", "0 or more"),
        ("[class-attrs-0]\ntopk=1", "num-detected-classes in [property]"),
        ("num-detected-classes=2\n[class-attrs-2]", "a class from 0 to 1"),
        ("num-detected-classes=2\n[class-attrs-99999999999999999999]", "a class from 0 to 1"),
        ("[class-attrs-ALL]\ntopk=1", "[class-attrs-all]"),
        ("[class-attrs-]\ntopk=1", "[class-attrs-all]"),
    ],
)
def test_refused_values_name_what_is_allowed(load: Load, line: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(line)
    assert expected in str(caught.value)
    assert "model.txt:" in str(caught.value)


def test_a_bad_class_count_is_one_error(load: Load) -> None:
    with pytest.raises(ConfigError) as caught:
        load("num-detected-classes=many\n[class-attrs-3]\ntopk=1\n")
    assert not isinstance(caught.value, ConfigProblemsError)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no group [property]"),
        ("[Property]\ngpu-id=0", "small letters"),
        ("[ property ]\ngpu-id=0", "without blanks"),
        ("[application]\na=1\n[primary-gie]\n", "application's file"),
        ("[sources]\na=1\n", "this is a pipeline file"),
    ],
)
def test_no_property_group(load: Load, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text, whole=True)
    assert words in str(caught.value)


def test_origins(load: Load, tmp_path: Path) -> None:
    cfg = load(
        "num-detected-classes=3\nenable-dbscan=1\nnetwork-mode=2 # FP16\n"
        "[class-attrs-all]\nminBoxes=3\ntopk=5\n[class-attrs-1]\ntopk=6\n"
    )
    path = tmp_path / "model.txt"
    assert str(cfg.origin("network_mode")) == f"{path}:4"
    assert cfg.origin("network-mode").text == "2 # FP16"
    assert (cfg.origin("cluster_mode").key, cfg.origin("cluster_mode").line) == ("enable-dbscan", 3)
    assert cfg.origin("batch_size").kind == "default"
    assert cfg.origin("minBoxes", class_id=2).line == 6
    assert cfg.origin("topk", class_id=0).line == 7
    assert cfg.origin("topk", class_id=1).line == 9
    assert cfg.origin("eps", class_id=1).kind == "default"
    changed = cfg.with_overrides(batch_size=2)
    assert changed.origin("batch_size").kind == "override"
    assert changed.origin("network_mode").line == 4


def test_groups_apply_in_their_own_order(load: Load) -> None:
    cfg = load(
        "[class-attrs-01]\ntopk=1\neps=0.5\n[class-attrs-all]\ntopk=9\nminBoxes=2\n"
        "[class-attrs-1abc]\ntopk=3\n[property]\nnum-detected-classes=2\n"
    )
    assert cfg.per_class == (
        ClassAttrs(topk=9, min_boxes=2),
        ClassAttrs(topk=3, min_boxes=2, eps=0.5),
    )
    assert said(cfg, "class-attrs-1abc", "read as [class-attrs-1]")


@pytest.mark.parametrize("network_type", [1, 2, 100])
def test_class_groups_of_other_types_are_neither_read_nor_checked(
    load: Load, network_type: int
) -> None:
    cfg = load(f"[class-attrs-all]\ntopk=x\n[property]\nnetwork-type={network_type}\n")
    assert cfg.all_classes == ClassAttrs()
    assert said(cfg, "model.txt:2", "[class-attrs-all] is not read")


def test_repeated_key_last_wins_and_is_told(load: Load) -> None:
    cfg = load("batch-size=2\nmaintain-aspect-ratio=1\nbatch-size=4\nmaintain-aspect-ratio=0\n")
    assert cfg.batch_size == 4
    assert not cfg.maintain_aspect_ratio
    assert said(cfg, "model.txt:4", "batch-size=4 replaces batch-size=2 of line 2")


@pytest.mark.parametrize(("again", "level"), [("4", "info"), ("5", "warning")])
def test_a_repeat_with_the_same_value_is_for_the_record(load: Load, again: str, level: str) -> None:
    (notice,) = [
        n
        for n in load(f"batch-size=4\nbatch-size={again}\n").notices
        if "the last one counts" in n.sentence
    ]
    assert notice.level == level


@pytest.mark.parametrize(
    ("lines", "field", "expected", "words"),
    [
        ("is-classifier=1", "network_type", NetworkType.CLASSIFIER, "network-type=1"),
        ("is-classifier=false", "network_type", NetworkType.DETECTOR, "network-type=0"),
        ("is-classifier=1\nnetwork-type=0", "network_type", NetworkType.DETECTOR, "ignored"),
        ("enable-dbscan=1", "cluster_mode", ClusterMode.DBSCAN, "cluster-mode=1"),
        ("enable-dbscan=0", "cluster_mode", ClusterMode.GROUP_RECTANGLES, "says nothing"),
        ("enable-dbscan=x\ncluster-mode=2", "cluster_mode", ClusterMode.NMS, "ignored"),
        ("input-dims=3;40;50;1", "infer_dims", (3, 40, 50), "infer-dims=3;40;50"),
        ("uff-input-dims=3;4;5;0\ninfer-dims=1;2;3", "infer_dims", (1, 2, 3), "ignored"),
        ("infer-dims=3;0;5", "infer_dims", None, "counts as absent"),
        ("max-gpu-mem-per=0", "max_gpu_mem_per", 99.0, "99 is used"),
        ("max-gpu-mem-per=200", "max_gpu_mem_per", 100.0, "100 is used"),
        ("onnx-file=", "onnx_file", None, "empty"),
        ("parse-func=4", "parse_bbox_func_name", None, "parse-bbox-func-name"),
    ],
)
def test_old_keys_and_corrections(
    load: Load, lines: str, field: str, expected: object, words: str
) -> None:
    cfg = load(lines)
    assert getattr(cfg, field) == expected
    assert said(cfg, words)


def test_input_dims_carry_the_uff_order(load: Load) -> None:
    assert load("input-dims=3;4;5;2").uff_input_order == 2


@pytest.mark.parametrize(
    ("lines", "value", "words"),
    [
        ("threshold=0.5", 0.5, "is an old key"),
        ("threshold=0.5\npre-cluster-threshold=0.6", 0.6, "pre-cluster-threshold in line 4 counts"),
        ("pre-cluster-threshold=0.6\nthreshold=0.5", 0.5, "threshold in line 4 counts"),
    ],
)
def test_old_threshold(load: Load, lines: str, value: float, words: str) -> None:
    cfg = load(f"[class-attrs-all]\n{lines}")
    assert cfg.all_classes.pre_cluster_threshold == value
    assert said(cfg, words)


def test_every_kind_of_value(load: Load) -> None:
    cfg = load(
        "offsets=103.9;116.7;123.6;\noutput-blob-names=a; b ;c\nfilter-out-class-ids=0;2\n"
        "network-input-order=1\nop-tensor-files=x;/y\nauto-inc-mem=7\ninterval=010\n"
    )
    assert cfg.offsets == (103.9, 116.7, 123.6)
    assert cfg.output_blob_names == ("a", " b ", "c")
    assert cfg.filter_out_class_ids == (0, 2)
    assert cfg.network_input_order is TensorOrder.NHWC
    assert cfg.op_tensor_files == (cfg.path.parent / "x", Path("/y"))
    assert cfg.auto_inc_mem is True
    assert cfg.interval == 10


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("netword-mode=2", ("netword-mode is not a key", "network-mode?")),
        ("process_mode=2", ("process-mode?",)),
        (";batch-size=2", ("comments start with #",)),
        ("nms-iou-threshold=0.5", ("belongs into [class-attrs-all]",)),
        ("input-tensor-meta=1", ("element property", "input-tensor-from-meta")),
        ("[class-attr-all]\ntopk=1", ("[class-attr-all] is not read", "[class-attrs-all]?")),
        ("[class_attrs_3]\ntopk=1", ("[class-attrs-3]?",)),
        ("[tests]\nfile-loop=1", ("group [tests] is not read",)),
        ("gpu-id[de]=1", ("translation",)),
        ("[class-attrs-all]\nbatch-size=1", ("belongs into [property]",)),
        ("[class-attrs-all]\nmin-boxes=1", ("minBoxes?",)),
    ],
)
def test_what_has_no_effect_is_told(load: Load, line: str, words: tuple[str, ...]) -> None:
    cfg = load(line)
    assert said(cfg, *words), messages(cfg)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("parse-bbox-func-name=X # note", "looks like a comment is part of the value"),
        ("parse-bbox-func-name=X ", "blank at the end"),
        ("parse-bbox-func-name=my-parser", "no function can be called that"),
        ('onnx-file="a.onnx"', "quotes are part of the value"),
        ("onnx-file=~/a.onnx", "neither ~ nor $NAME"),
        ("onnx-file=$HOME/a.onnx", "neither ~ nor $NAME"),
        ("tlt-model-key='k'", "quotes are part of the value"),
        ("custom-lib-path=a.so ; x", "looks like a comment"),
        ("interval=1 2", "only 1 is read"),
        ("filter-out-class-ids=0 1 2", "only 0 is read"),
        ("filter-out-class-ids=1; ", "is read as 0"),
        ("classifier-type=" + "x" * 1100, "the original cuts it"),
    ],
)
def test_suspicious_values_are_told(load: Load, line: str, words: str) -> None:
    cfg = load(line)
    assert said(cfg, "model.txt:2", words), messages(cfg)


@pytest.mark.parametrize("line", ["network-mode=0 # FP32", "infer-dims=3;4;5 # x", "gpu-id=0 "])
def test_harmless_comments_are_not_told(load: Load, line: str) -> None:
    assert not said(load(line), "model.txt:2")


def test_comment_and_blank_stay_in_texts(load: Load) -> None:
    cfg = load('parse-bbox-func-name=X # note \ntlt-model-key="q"\n')
    assert cfg.parse_bbox_func_name == "X # note "
    assert cfg.tlt_model_key == '"q"'


class TestConfigFile:
    def test_missing_names_neighbours(self, tmp_path: Path) -> None:
        (tmp_path / "config_infer.txt").write_text("[property]\n")
        with pytest.raises(ConfigError, match=r"near it in .*: config_infer.txt"):
            ModelConfig.load(tmp_path / "config_infr.txt")

    @pytest.mark.parametrize("name", ["", "a/b/c.txt", "x\0y", "n" * 5000])
    def test_unusable_names(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(ConfigError):
            ModelConfig.load(f"{tmp_path}/{name}")

    def test_too_large(self, tmp_path: Path) -> None:
        path = tmp_path / "video.txt"
        with path.open("wb") as file:
            file.write(b"\xb5" * (5 << 20))
        with pytest.raises(ConfigError, match="larger than 1 MiB"):
            ModelConfig.load(path)

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"and this is a folder\.$"):
            ModelConfig.load(tmp_path)
        for name in ("a.txt", "config_infer.txt"):
            (tmp_path / name).write_text("[property]\n")
        with pytest.raises(ConfigError, match=r"name the file in it, as .*config_infer\.txt"):
            ModelConfig.load(tmp_path)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_unreadable(self, tmp_path: Path) -> None:
        path = tmp_path / "model.txt"
        path.write_text("[property]\n")
        path.chmod(0)
        with pytest.raises(ConfigError, match="cannot be read"):
            ModelConfig.load(path)

    def test_names_that_no_terminal_can_print(self, tmp_path: Path) -> None:
        path = tmp_path / "m\udcff\n.txt"
        path.write_text("[property]\nsymmetric-padding=1\nx=1\nonnx-file=a\n")
        cfg = ModelConfig.load(path)
        for text in [*map(str, cfg.notices), *(row.origin for row in cfg.effective())]:
            assert text.isprintable()
        with pytest.raises(ConfigError) as caught:
            cfg.check_files()
        str(caught.value).encode()

    @pytest.mark.parametrize("name", ["m.yml", "m.yaml", "m.YML", "m.cfg", "yml"])
    def test_the_name_decides_the_form(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        is_yaml = name in ("m.yml", "m.yaml")
        path.write_text("property:\n  batch-size: 3\n" if is_yaml else "[property]\nbatch-size=3\n")
        assert ModelConfig.load(path).batch_size == 3


@pytest.mark.parametrize(
    ("name", "size", "says"),
    [
        ("m.onnx", 9, "headrace trtexec --onnx="),
        ("m.onnx", MAX_BYTES + 1, "with onnx-file=m.onnx"),
        ("m.ONNX_b1.engine", 9, "headrace trtexec --loadEngine="),
        ("m.caffemodel", 9, "with model-file=m.caffemodel"),
    ],
)
@pytest.mark.parametrize("load", [ModelConfig.load, load_pipeline])
def test_a_model_is_told_from_a_config(
    tmp_path: Path, load: Callable[[Path], object], name: str, size: int, says: str
) -> None:
    (tmp_path / name).write_bytes(b"\x08\n\0".ljust(size, b"x"))
    if name == "m.onnx" and load == ModelConfig.load:
        with pytest.raises(ModelError, match="ONNX"):  # it needs no config
            load(tmp_path / name)
        return
    with pytest.raises(ConfigError, match=r": this is an? (model|engine), not a config") as error:
        load(tmp_path / name)
    assert says in str(error.value)
    assert f"headrace show {tmp_path / name}" in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "net.prototxt",
            'name: "net"\nlayer {\n  name: "data"\n}\n',
            ["net.prototxt --with", "proto-file=net.prototxt and model-file=net.caffemodel"],
        ),
        ("old.prototxt", "layers: { }\n", ["model-file=old.caffemodel"]),
        ("net.prototxt", 'input: "data"\ninput_shape { dim: 1 }\n', ["proto-file="]),
        (
            "yolo.cfg",
            "# yolo\n[net]\nbatch=1\n[convolutional]\nsize=3\n",
            ["yolo.cfg --with", "custom-network-config=yolo.cfg and model-file=yolo.weights"],
        ),
        ("m.etlt", "\x00\x01encrypted", ["encrypted", "ONNX with TAO"]),
    ],
)
@pytest.mark.parametrize("load", [ModelConfig.load, load_pipeline])
def test_models_of_two_files_and_encoded_ones_are_told_from_a_config(
    tmp_path: Path, load: Callable[[Path], object], name: str, text: str, says: list[str]
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match="not a config") as error:
        load(tmp_path / name)
    for words in says:
        assert words in str(error.value)


@pytest.mark.parametrize("name", ["m.cfg", "m.prototxt", "m.etlt", "m.onnx"])
def test_a_config_may_be_named_like_a_model(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("# [net] comes from\n[property]\nbatch-size=3\n")
    assert ModelConfig.load(tmp_path / name).batch_size == 3
