"""The YAML form: what it accepts, what it reads otherwise than INI, what is refused."""

from __future__ import annotations

import pytest

from headrace.config import ClusterMode
from headrace.errors import ConfigError
from tests.config.conftest import Load


@pytest.mark.parametrize(
    ("lines", "field", "expected"),
    [
        ("infer-dims: 3;640;480", "infer_dims", (3, 640, 480)),
        ("infer-dims: '3;640;480'", "infer_dims", (3, 640, 480)),
        ("offsets: 123.6;116.2;103.5", "offsets", (123.6, 116.2, 103.5)),
        ("batch-size: '4'", "batch_size", 4),
        ("batch-size: 010", "batch_size", 8),
        ("batch-size: 0x10", "batch_size", 16),
        ("interval: 010", "interval", 10),
        ("interval: 3abc", "interval", 3),
        ("filter-out-class-ids: 1a;02; 3", "filter_out_class_ids", (1, 2, 3)),
        ("maintain-aspect-ratio: 1", "maintain_aspect_ratio", True),
        ("maintain-aspect-ratio: 0", "maintain_aspect_ratio", False),
        ("auto-inc-mem: 0", "auto_inc_mem", False),
        ("cluster-mode: 2   # NMS", "cluster_mode", ClusterMode.NMS),
        ("max-gpu-mem-per: 90.5", "max_gpu_mem_per", 90.5),
        ("net-scale-factor: 1e-3", "net_scale_factor", 0.001),
        ("output-blob-names: a; b", "output_blob_names", ("a", " b")),
        ("output-blob-names: a;", "output_blob_names", ("a", "")),
        (r"tlt-model-key: a\;b", "tlt_model_key", r"a\;b"),
        ("tlt-model-key: ''", "tlt_model_key", None),
        ("gpu-id: &n 3\nbatch-size: *n", "batch_size", 3),
    ],
)
def test_accepted(load_yaml: Load, lines: str, field: str, expected: object) -> None:
    assert getattr(load_yaml(lines), field) == expected


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ("gpu-id: 0\ninfer-dims: [3, 640, 640]", 3, "3;640;640"),
        ("infer-dims:\n  - 3\n  - 4\n  - 5", 2, "is a sequence"),
        ("onnx-file: {a: b}", 2, "is a mapping"),
        ("infer-dims: 3;640;640;", 2, "not a list"),
        ("offsets: 1;2;3;", 2, "empty item"),
        ("filter-out-class-ids: 1;", 2, "empty item"),
        ("maintain-aspect-ratio: true", 2, "write 1"),
        ("output-tensor-meta: yes", 2, "write 1"),
        ("maintain-aspect-ratio: 2", 2, "0 or 1"),
        ("batch-size: 1.0", 2, "an integer"),
        ("batch-size: 09", 2, "an integer"),
        ("batch-size: -1", 2, "1 to 1024"),
        ("interval: abc", 2, "an integer"),
        ("interval: 99999999999", 2, "32-bit"),
        ("batch-size: " + "9" * 9999, 2, "32-bit"),
        ("batch-size: 0x" + "f" * 9999, 2, "32-bit"),
        ("net-scale-factor: 0,5", 2, "0.5"),
        ("net-scale-factor: 0x1p3", 2, "a number"),
        ("net-scale-factor:", 2, "has no value"),
        ("onnx-file: ~", 2, "has no value"),
        ("gpu-id: 0\n[a]: 1", 3, "a key must be a plain text"),
        ("gpu-id: *nothing", 2, "malformed YAML"),
        ("gpu-id: 'unclosed", 3, "malformed YAML"),
        ("gpu-id: &a [1]\nbatch-size: *a", 2, "is a sequence"),
        ('onnx-file: "a\\0b"', 2, "path"),
        ("cluster-mode: 5", 2, "0 (group rectangles)"),
    ],
)
def test_refused(load_yaml: Load, lines: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_yaml(lines)
    assert f"model.yml:{line}:" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no group [property]"),
        ("just a text", "not a mapping"),
        ("- property", "not a mapping"),
        ("? [a, {b: c}]\n: {d: e}\nproperty:\n  gpu-id: 0", ":1: a group name must be"),
        ("property: 3", "not a mapping"),
        ("property:\n  gpu-id=0", "in YAML ': ' separates key and value"),
        ("# of mine\n\n[property]\ngpu-id=0", "yaml:3: [group] is INI"),
        ("[property]\r\ngpu-id: 0", "yaml:1: [group] is INI"),
        ("property:\n  gpu-id: 0\nproperty:\n  gpu-id: 1", "repeated"),
        ("%YAML 2.0\n---\nproperty:\n  gpu-id: 0", "malformed YAML"),
        ("property:\n  gpu-id: 0\n%YAML 1.2\n", "malformed YAML"),
        ("property:\n\tgpu-id: 0", "malformed YAML"),
        ("Property:\n  gpu-id: 0", "small letters"),
        (b"property:\n  onnx-file: \xff", "malformed YAML"),
        (b"property:\n  onnx-file: \x07", "malformed YAML"),
        ("a: " + "[" * 60, "nested deeper than 50"),
        ("a: " + "[" * 5000, "nest"),  # libyaml may refuse it first
    ],
)
def test_refused_files(load: Load, text: str | bytes, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text, name="model.yaml")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "lines",
    ["is-classifier: 1", "input-dims: 3;4;5;0", "uff-input-dims: 3;4;5;0", "enable-dbscan: 1"],
)
def test_keys_of_the_ini_form_only(load_yaml: Load, lines: str) -> None:
    cfg = load_yaml(lines)
    (notice,) = [n for n in cfg.notices if "not read in YAML" in n.sentence]
    assert notice.level == "warning"
    assert (cfg.network_type, cfg.infer_dims, cfg.cluster_mode) == (0, None, 0)


def test_threshold_is_not_read_in_yaml(load: Load) -> None:
    cfg = load("property: {}\nclass-attrs-all:\n  threshold: 0.7\n", name="a.yml")
    assert cfg.all_classes.pre_cluster_threshold == 0.2
    assert any("write pre-cluster-threshold" in n.sentence for n in cfg.notices)


def test_class_groups_and_lines(load: Load) -> None:
    cfg = load(
        "property:\n  num-detected-classes: 2\n"
        "class-attrs-1:\n  topk: 4\nclass-attrs-all:\n  topk: 9\n",
        name="a.yml",
    )
    assert [a.topk for a in cfg.per_class] == [9, 4]
    assert cfg.origin("topk", class_id=1).line == 4
    assert cfg.origin("topk", class_id=0).line == 6


def test_foreign_content_and_second_document_are_skipped(load: Load) -> None:
    cfg = load(
        "other: [1, {a: &x 1}, &y [*y, *x]]\nproperty:\n  batch-size: 2\n---\nproperty: 3\n",
        name="a.yml",
    )
    assert cfg.batch_size == 2
    assert any("only the first document" in n.sentence for n in cfg.notices)


def test_alias_bomb_costs_nothing(load: Load) -> None:
    bomb = "a0: &a0 [x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40)
    )
    assert load(bomb + "property:\n  batch-size: 2\n", name="a.yml").batch_size == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"output-blob-names: {'x' * 64}", "the original cuts it after 63 bytes"),
        (f"classifier-type: {'y' * 64}", "the original cuts it after 63 bytes"),
        (f"layer-device-precision: {'y' * 64}:fp32:gpu", "original up to 6.3 cuts it after 63"),
        (f"tlt-model-key: {'y' * 1024}", "the original cuts it after 1023 bytes"),
        (f"custom-network-config: {'y' * 4096}", "the original cuts it after 4095 bytes"),
        (f"custom-network-config: {'y' * 1024}", ""),
    ],
)
def test_short_texts_of_the_original_are_told(load_yaml: Load, line: str, words: str) -> None:
    cfg = load_yaml(line)
    found = [(n.level, words in n.sentence) for n in cfg.notices if " cuts it " in n.sentence]
    assert found == ([("info", True)] if words else [])


def test_the_last_of_repeated_keys_counts(load_yaml: Load) -> None:
    cfg = load_yaml("gpu-id: 0\nbatch-size: 2\ngpu-id: 1\nbatch-size: 2")
    assert (cfg.gpu_id, cfg.batch_size, cfg.origin("gpu_id").line) == (1, 2, 4)
    levels = {n.where.rpartition(":")[2]: n.level for n in cfg.notices if n.where}
    assert {line: levels[line] for line in "45"} == {"4": "warning", "5": "info"}


@pytest.mark.parametrize(
    "head",
    [
        "%YAML:1.0\n",
        "%YAML:1.0\n---\n",
        "%YAML 1.2\n",
        "%YAML 1.2\r\n---\r\n",
        "# about\n\n  # more\n%YAML 1.2\n# and more\n",
        "\ufeff# about\n%YAML:1.0\n\n---\n",
    ],
)
def test_versions_before_the_document_are_passed_over(load: Load, head: str) -> None:
    cfg = load(f"{head}property:\n  batch-size: 3\n", name="a.yml")
    assert (cfg.batch_size, cfg.origin("batch_size").line) == (3, head.count("\n") + 2)


def test_keys_that_lost_their_indent_are_told_with_their_group(load: Load) -> None:
    cfg = load(
        "property:\n  num-detected-classes: 2\nclass-attrs-all:\npre-cluster-threshold: 0.4\n"
        "topk: 20\nclass-attrs-1:\ntopk: 30\nbatch-size: 4\nother: 5\n",
        name="a.yml",
    )
    assert (cfg.all_classes.topk, cfg.batch_size) == (-1, 1)
    found = {n.where.rpartition(":")[2]: n for n in cfg.notices if n.where}
    assert "pre-cluster-threshold, topk stand" in found["4"].sentence
    assert found["4"].sentence.endswith("indent under class-attrs-all:")
    assert "batch-size stands outside" in found["8"].sentence
    assert found["8"].sentence.endswith("indent under property:")
    assert (found["4"].level, found["8"].level, found["9"].level) == ("warning", "warning", "info")
