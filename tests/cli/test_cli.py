"""The command line as a newcomer meets it: help, exit codes, messages, files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.processes import started
from tests.inside import headrace
from tests.profiles import slow

Config = Callable[..., Path]


def test_help_shows_commands_examples_and_exit_codes() -> None:
    done = headrace("--help")
    assert done.returncode == 0
    for word in (
        "run",
        "build",
        "calibrate",
        "bench",
        "show",
        "demo",
        "completion",
        "Examples:",
        "Exit codes:",
    ):
        assert word in done.stdout


@pytest.mark.parametrize(
    "command", ["run", "build", "calibrate", "bench", "show", "demo", "completion"]
)
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = headrace(command, "--help")
    assert done.returncode == 0
    assert f"headrace {command}" in done.stdout.split("Examples:")[1]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["rnu"], "Did you mean 'run'"),
        (["run"], "Missing argument"),
        (["run", "a.txt", "b.mp4", "--treads", "2"], "--threads"),
        (["run", "a.txt", "b.mp4", "--limit", "0"], "--limit"),
        (["run", "a.txt", "1.jpg", "2.jpg"], "must be quoted"),
        (["run", "a.txt", "b.mp4", "--json", "-o", "jsonl:-"], "choose one"),
    ],
)
def test_wrong_usage_is_exit_2_with_a_hint(args: list[str], words: str) -> None:
    done = headrace(*args)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_run_writes_what_was_found(mean_config: Config, photos: Path, tmp_path: Path) -> None:
    config = mean_config()
    out = tmp_path / "out"
    done = headrace(
        "run", config, photos, "-o", out / "o.jsonl", "-o", f"images:{out / 'drawn'}",
        "-o", f"coco:{out / 'o.json'}", "-o", f"kitti:{out / 'kitti'}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (out / "o.jsonl").read_text().splitlines()]
    assert [line["frame"] for line in lines] == [0, 1, 2]
    assert [(line["width"], line["height"]) for line in lines] == [(64, 48)] * 3
    assert [line["objects"][0]["confidence"] for line in lines] == pytest.approx(
        [1 / 3, 2 / 3, 1], abs=1e-4
    )
    thing = lines[0]["objects"][0]
    assert {k: thing[k] for k in ("class_id", "label", "left", "top", "width", "height")} == {
        "class_id": 0, "label": "thing", "left": 16, "top": 12, "width": 32, "height": 24
    }  # fmt: skip
    assert len(json.loads((out / "o.json").read_text())["annotations"]) == 3
    assert len(list((out / "kitti").glob("*.txt"))) == 3
    assert len([p for p in (out / "drawn").iterdir() if p.suffix in (".jpg", ".png")]) == 3
    assert "found 3 thing" in done.stdout
    assert str(out / "o.jsonl") in done.stdout


def test_json_report_is_one_document_on_stdout(mean_config: Config, photos: Path) -> None:
    done = headrace("run", mean_config(), photos, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["frames"], report["inferred"], report["objects"]) == (3, 3, {"thing": 3})
    assert report["interrupted"] is False


def test_a_video_comes_out_as_long_as_it_went_in(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    import av

    out = tmp_path / "o.mp4"
    done = headrace("run", mean_config(), photos, "-o", out)
    assert done.returncode == 0, done.stderr
    with av.open(str(out)) as container:
        assert container.streams.video[0].codec_context.name == "h264"
        frames = list(container.decode(video=0))
    assert [(f.width, f.height) for f in frames] == [(64, 48)] * 3


def test_the_second_run_uses_the_saved_engine(mean_config: Config, photos: Path) -> None:
    config = mean_config()
    first, second = headrace("run", config, photos), headrace("run", config, photos)
    assert (first.returncode, second.returncode) == (0, 0)
    assert (config.parent / "mean.onnx_b1_gpu0_fp32.engine").is_file()
    assert "engine" in first.stderr
    stale = headrace(
        "run", mean_config(batch_size=2, model_engine_file="mean.onnx_b1_gpu0_fp32.engine"), photos
    )
    assert "batch 1 ≠ 2" in stale.stderr


@pytest.mark.parametrize(
    ("keys", "code", "words"),
    [
        ({"cluster_mode": 7}, 3, "cluster-mode=7"),
        ({"onnx_file": "gone.onnx"}, 3, "gone.onnx"),
        ({"labelfile_path": "gone.txt"}, 3, "gone.txt"),
        ({"parse_bbox_func_name": "parce"}, 5, "parse"),
        ({"network_type": 3, "cluster_mode": 2}, 3, "cluster-mode"),
        ({"network_type": 2}, 5, "three axes"),
        ({"offsets": "1;2"}, 3, "offsets"),
    ],
)
@pytest.mark.sampled
def test_bad_config_has_its_exit_code_and_names_the_value(
    mean_config: Config, photos: Path, keys: dict[str, object], code: int, words: str
) -> None:
    done = headrace("run", mean_config(**keys), photos)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("source", ["gone.mp4", "*.nothing", "empty", "text.mp4"])
def test_bad_source_is_exit_6(mean_config: Config, tmp_path: Path, source: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.mp4").write_text("not a video\n")
    done = headrace("run", mean_config(), tmp_path / source, "-o", tmp_path / "o.jsonl")
    assert done.returncode == 6, done.stderr
    assert source in done.stderr
    assert "Traceback" not in done.stderr


def test_outputs_never_replace_inputs(mean_config: Config, photos: Path) -> None:
    config = mean_config()
    for path in (config, config.parent / "mean.onnx", config.parent / "labels.txt"):
        before = path.read_bytes()
        done = headrace("run", config, photos, "-o", f"jsonl:{path}")
        assert done.returncode == 6, done.stderr
        assert path.read_bytes() == before


def test_the_engine_is_never_an_output(mean_config: Config, photos: Path) -> None:
    config = mean_config()
    engine = Path(headrace("build", config).stdout.strip())
    before = engine.read_bytes()
    assert headrace("run", config, photos, "-o", f"jsonl:{engine}").returncode == 6
    assert engine.read_bytes() == before


def test_two_outputs_of_one_name_are_refused(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"
    done = headrace("run", mean_config(), photos, "-o", out, "-o", f"coco:{out}")
    assert done.returncode == 6
    assert str(out) in done.stderr


def test_unknown_output_lists_the_kinds(mean_config: Config, photos: Path) -> None:
    done = headrace("run", mean_config(), photos, "-o", "out.xyz")
    assert done.returncode == 6
    assert "jsonl" in done.stderr
    assert "Traceback" not in done.stderr


def test_strict_refuses_warnings_before_writing(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    config = mean_config(network_mode=1)  # and no table: FP32 is built
    assert headrace("run", config, photos).returncode == 0
    out = tmp_path / "o.jsonl"
    done = headrace("run", config, photos, "--strict", "-o", out)
    assert done.returncode == 7
    assert "network-mode" in done.stderr
    assert not out.exists()


def test_a_parser_that_always_fails_is_an_error(mean_config: Config, tmp_path: Path) -> None:
    Image.new("RGB", (64, 48)).save(tmp_path / "black.png")
    config = mean_config(parse_bbox_func_name="fails_on_black")
    done = headrace("run", config, tmp_path / "black.png")
    assert done.returncode == 5
    assert "nothing to see" in done.stderr
    assert "mean_parser.py" in done.stderr


def test_unknown_keys_and_typos_are_said_once_where_quiet_too(
    mean_config: Config, photos: Path
) -> None:
    done = headrace("run", mean_config(netword_mode=1), photos, "-q")
    assert done.returncode == 0
    assert "note: " not in done.stderr
    assert done.stderr.count("netword-mode") == 1
    assert "network-mode" in done.stderr


@pytest.mark.parametrize("command", ["run", "build", "bench", "show"])
def test_a_misspelt_key_is_said_once_where_the_start_is_refused_for_it(
    mean_config: Config, photos: Path, command: str
) -> None:
    bad = {} if command in ("run", "show") else {"onnx_file": "nothing.onnx"}
    config = mean_config(parse_bbox_func_name=None, parse_bbox_function_name="fails", **bad)
    done = headrace(command, config, *([photos] if command == "run" else []))
    assert done.returncode == (4 if bad else 5), done.stderr
    said = "parse-bbox-function-name is not a key"
    assert done.stderr.count(said) == 1, done.stderr
    refusal = "error: " if command != "show" else "headrace run would refuse: "
    assert done.stderr.index(said) < done.stderr.index(refusal)
    assert "did you mean parse-bbox-func-name?" in done.stderr
    if not bad:
        assert "mean_parser.py has fails_on_black, parse" in done.stderr


def test_warnings_are_told_before_the_error_of_a_later_model(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    first = mean_config(netword_mode=1)
    later = tmp_path / "later.txt"
    later.write_text(first.read_text().replace("mean.onnx", "nothing.onnx"))
    done = headrace("run", first, later, photos, "-q")
    assert done.returncode == 3
    assert done.stderr.count("netword-mode") == 2  # each file has it
    assert "note: " not in done.stderr
    later.write_text("[property]\nnetword-mode=1\nbatch-size=x\n")
    done = headrace("show", later)
    assert done.returncode == 3
    assert done.stderr.count("netword-mode") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
@pytest.mark.sampled
def test_interrupt_finishes_the_files(
    mean_config: Config, tmp_path: Path, number: signal.Signals
) -> None:
    import av

    config = mean_config()
    folder = tmp_path / "many"
    folder.mkdir()
    image = Image.fromarray(np.full((240, 320, 3), 200, np.uint8))
    for i in range(2000):
        (folder / f"{i}.png").symlink_to(tmp_path / "one.png")
    image.save(tmp_path / "one.png")
    lines, video = tmp_path / "o.jsonl", tmp_path / "o.mp4"
    process = started("run", config, folder, "-o", lines, "-o", video)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (lines.exists() and lines.stat().st_size > 2000):
        time.sleep(0.02)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "stopped after" in stdout
    records = [json.loads(line) for line in lines.read_text().splitlines()]
    assert 0 < len(records) < 2000
    with av.open(str(video)) as container:
        assert sum(1 for _ in container.decode(video=0)) == len(records)


def test_show_names_every_origin(mean_config: Config) -> None:
    config = mean_config()
    done = headrace("show", config, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    values = {v["key"]: v for v in data["values"] if v["group"] == "property"}
    assert values["cluster-mode"]["value"].startswith("4")
    assert "config.txt:" in values["cluster-mode"]["origin"]
    assert values["interval"]["origin"] == "default"
    assert data["model"]["outputs"] == ["mean float32[n, 3]"]
    assert "cluster-mode" in headrace("show", config).stdout


def test_show_says_which_parser_decodes_and_why_a_run_would_be_refused(
    mean_config: Config,
) -> None:
    good = headrace("show", mean_config())
    assert good.returncode == 0, good.stderr
    assert "parser: parse in mean_parser.py" in good.stdout
    assert "built-in parsers that fit" in good.stdout
    config = mean_config(
        labelfile_path="label.txt", custom_lib_path=None, parse_bbox_func_name="HeadraceParseYoloXX"
    )
    bad = headrace("show", config)
    assert bad.returncode == 3
    assert bad.stderr.count("headrace run would refuse") == 2
    assert "near it" in bad.stderr
    assert "labels.txt" in bad.stderr
    assert "did you mean HeadraceParseYoloX" in bad.stderr


def test_show_refuses_plugins_that_a_run_refuses(mean_config: Config, photos: Path) -> None:
    import onnx

    config = mean_config()
    parser, model = config.with_name("mean_parser.py"), onnx.load(config.with_name("mean.onnx"))
    model.graph.node[0].op_type = "NobodyKnows"
    onnx.save(model, config.with_name("mean.onnx"))
    for command in (("show", config), ("run", config, photos)):
        done = headrace(*command)
        assert done.returncode == 4, done.stderr
        assert "operator(s) that onnxruntime does not know: NobodyKnows" in done.stderr
    parser.write_text("def parse(:\n")
    done = headrace("show", config)
    assert done.returncode == 5, done.stderr
    assert "mean_parser.py:1" in done.stderr


def test_show_suggests_parsers_of_boxes_for_detectors_only(mean_config: Config) -> None:
    classifier = mean_config(network_type=1, custom_lib_path=None, parse_bbox_func_name=None)
    done = headrace("show", classifier)
    assert "outputs: " in done.stdout
    assert "built-in parsers that fit" not in done.stdout


def test_show_model_and_engine(mean_config: Config) -> None:
    config = mean_config()
    model = headrace("show", config.parent / "mean.onnx")
    assert "GlobalAveragePool" in model.stdout
    built = headrace("build", config)
    assert built.returncode == 0
    engine = headrace("show", built.stdout.strip(), "--json")
    assert engine.returncode == 0, engine.stderr
    assert "onnxruntime" in engine.stdout


@pytest.mark.parametrize("name", ["gone.onnx", "gone.engine", "gone.txt", "."])
def test_show_of_nothing_is_an_error(tmp_path: Path, name: str) -> None:
    done = headrace("show", tmp_path / name)
    assert done.returncode in (3, 4)
    assert "Traceback" not in done.stderr
    assert str(tmp_path) in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell: str) -> None:
    done = headrace("completion", shell)
    assert done.returncode == 0
    assert "_HEADRACE_COMPLETE" in done.stdout


def test_completion_completes() -> None:
    words = {"_HEADRACE_COMPLETE": "bash_complete", "COMP_WORDS": "headrace ru", "COMP_CWORD": "1"}
    code = (
        "import sys; sys.argv = ['headrace']; "
        "from headrace.cli import main; main(prog_name='headrace')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **words},
        check=False,
    )
    assert "run" in done.stdout


@pytest.mark.parametrize("args", [("--help",), ("show", "{config}"), ("completion", "bash")])
@pytest.mark.sampled
def test_a_full_disk_behind_standard_output_is_exit_6(
    mean_config: Config, args: tuple[str, ...]
) -> None:
    command = [sys.executable, "-m", "headrace", *(a.format(config=mean_config()) for a in args)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == 6, done.stderr
    assert "standard output cannot be written: No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("suffix", ["", ".onnx", ".engine"])
def test_show_of_a_name_that_no_file_can_have(tmp_path: Path, suffix: str) -> None:
    done = headrace("show", tmp_path / ("n" * 300 + suffix))
    assert done.returncode in (3, 4), done.stderr
    assert "File name too long" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_lines_to_a_closed_standard_output_are_refused(mean_config: Config, photos: Path) -> None:
    command = f"exec {sys.executable} -m headrace run {mean_config()} {photos} -o jsonl:- >&-"
    done = subprocess.run(
        ["sh", "-c", command], stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert done.returncode == 6, done.stderr
    assert "standard output is closed" in done.stderr


@pytest.mark.parametrize("pipeline_file", [False, True])
@pytest.mark.sampled
def test_lines_on_standard_output_are_nothing_but_lines(
    mean_config: Config, photos: Path, tmp_path: Path, pipeline_file: bool
) -> None:
    """Neither the report nor what a parser prints comes between them."""
    config = mean_config()
    parser = config.parent / "mean_parser.py"
    noisy = "import os\nprint('imported')\n" + parser.read_text()
    parser.write_text(
        noisy.replace('"""One box', 'print("x"); os.write(1, b"y\\n")\n    """One box')
    )
    args: list[object] = [config, photos, "-o", "jsonl:-"]
    if pipeline_file:
        args = [tmp_path / "pipe.yml"]
        text = f"sources: [{photos}]\nmodels: [{config}]\nsinks: ['jsonl:-']\n"
        (tmp_path / "pipe.yml").write_text(text)
    done = headrace("run", *args)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["frame"] for line in done.stdout.splitlines()] == [0, 1, 2]
    for word in ("imported", "x\n", "y\n", "done: 3 frames"):
        assert word in done.stderr
    if pipeline_file:
        done = headrace("run", *args, "--json")
        assert done.returncode == 2
        assert "choose one" in done.stderr
    shown = headrace("show", config, "--json")
    assert json.loads(shown.stdout)["problems"] == []


@pytest.mark.parametrize("encoding", ["ascii", slow("latin1"), slow("utf-8")])
@pytest.mark.slow
def test_labels_that_do_not_fit_the_locale(
    mean_config: Config, photos: Path, encoding: str
) -> None:
    config = mean_config()
    (config.parent / "labels.txt").write_text("grün 😀\n", encoding="utf-8")
    command = [sys.executable, "-m", "headrace", "run", str(config), str(photos)]
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    text = subprocess.run(command, capture_output=True, env=env, timeout=60, check=False)
    assert text.returncode == 0, text.stderr
    assert b"found 3 gr" in text.stdout
    report = subprocess.run(
        [*command, "--json"], capture_output=True, env=env, timeout=60, check=False
    )
    assert json.loads(report.stdout.decode(encoding))["objects"] == {"grün 😀": 3}
    shown = subprocess.run(
        [sys.executable, "-m", "headrace", "show", str(config)],
        capture_output=True,
        env=env,
        timeout=60,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr


def test_nothing_from_a_file_steers_the_terminal(
    mean_config: Config, photos: Path, tmp_path: Path
) -> None:
    config = mean_config(
        parse_bbox_func_name="shout",
        parser="""
def shout(*args):
    raise ValueError("\\x1b[2J\\x07")
""",
    )
    done = headrace("run", config, photos)
    assert done.returncode == 5
    assert r"\x1b[2J\x07" in done.stderr
    done = headrace("run", config, tmp_path / "a\x1b[31m.mp4")
    assert r"a\x1b[31m.mp4" in done.stderr


@pytest.mark.slow
def test_names_that_are_no_text_leave_the_report_json(mean_config: Config, tmp_path: Path) -> None:
    image = os.fsencode(tmp_path) + b"/\xff.png"
    Image.new("RGB", (64, 48)).save(tmp_path / "a.png")
    os.rename(tmp_path / "a.png", image)
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "run", mean_config(), image, "--json"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.decode("utf-8"))["source"].endswith("\udcff.png")


def test_a_working_directory_that_is_gone_is_named(photos: Path, tmp_path: Path) -> None:
    command = (
        f"mkdir {tmp_path}/d; cd {tmp_path}/d; rmdir ../d; {sys.executable} -m headrace run c x"
    )
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "working directory" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("second", ["other.xyz", "old.jsonl", "config.txt", "./old.jsonl"])
@pytest.mark.sampled
def test_an_older_output_survives_when_another_is_refused(
    mean_config: Config, photos: Path, tmp_path: Path, second: str
) -> None:
    (tmp_path / "old.jsonl").write_text("precious\n")
    args = ("run", mean_config(), photos, "-o", "old.jsonl", "-o", second)
    done = headrace(*args, cwd=tmp_path)
    assert done.returncode == 6, done.stderr
    assert (tmp_path / "old.jsonl").read_text() == "precious\n"
    assert not list(tmp_path.glob("*.engine"))


def test_what_a_parser_prints_stays_out_of_the_report(mean_config: Config, photos: Path) -> None:
    config = mean_config(
        parse_bbox_func_name="chatty",
        parser="""
import ctypes
print("imported")

def chatty(*args):
    print("from Python")
    ctypes.CDLL(None).puts(b"from C")
    return parse(*args)
""",
    )
    done = headrace("run", config, photos, "--json")
    assert json.loads(done.stdout)["objects"] == {"thing": 3}
    for words in ("imported", "from Python", "from C"):
        assert words in done.stderr


@pytest.mark.slow
def test_a_second_interrupt_does_not_wait_for_a_library(mean_config: Config, photos: Path) -> None:
    config = mean_config()
    parser = config.with_name("mean_parser.py")
    text = parser.read_text().replace("def ", "import pathlib, time\n\n\ndef ", 1)
    head, colon, body = text.partition(":\n")
    mark = config.with_name("called")
    slow = f"    pathlib.Path({str(mark)!r}).touch()\n    time.sleep(300)\n"
    parser.write_text(head + colon + slow + body)
    process = started("run", config, photos, "-o", config.with_name("o.jsonl"))
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not mark.exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)  # it waits for the call
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Ctrl-C again leaves at once" in stderr
    assert "interrupted in a call that did not end" in stderr
