import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headrace._core.errors import ModelError
from headrace._core.files import (
    PartFile,
    hash_file,
    lock_path,
    locked,
    os_errors,
    os_reason,
    sha256_of,
    try_lock,
    write_atomically,
    write_where_named,
)
from headrace.config import ModelConfig
from headrace.engine import Plan
from headrace.infer.model import engine_path, load_or_build
from tests.network.onnx_models import image_model, save


@pytest.fixture
def model_path(tmp_path):
    """A model with a free batch, 3x4x6 images in, `doubled` and `mean` out."""
    return save(image_model(), tmp_path / "m.onnx")


BUILD = """
import sys
from headrace.config import ModelConfig
from headrace.infer.model import load_or_build
plan = load_or_build(ModelConfig(onnx_file=sys.argv[1]))
print("built" if any(n.code == "engine-built" for n in plan.decisions) else "loaded")
"""

SLOW_WRITE = (
    """
import os, sys, time
import headrace._core.files as store
real = os.fsync
def stuck(descriptor):
    real(descriptor)
    print("half-way", flush=True)
    time.sleep(60)
store.os.fsync = stuck
"""
    + BUILD
)

SLOW_BUILD = (
    """
import sys
import headrace.network.onnx_file as onnx_file
real = onnx_file.network_from_onnx
def slow(path, **how):
    print("building", flush=True)
    sys.stdin.readline()  # until the other one is as far as it gets
    return real(path, **how)
onnx_file.network_from_onnx = slow
"""
    + BUILD
)


def start(code, model, **how):
    return subprocess.Popen(
        [sys.executable, "-c", code, str(model)], stdout=subprocess.PIPE, text=True, **how
    )


def finish(process):
    out, _ = process.communicate(timeout=180)
    assert process.returncode == 0
    return out.strip().splitlines()[-1]


def waits(process):
    """Whether it says that it waits for another's engine, before it goes on or ends."""
    return any("another process is building this engine: waiting" in x for x in process.stderr)


@pytest.mark.slow
def test_two_processes_build_once(model_path):
    first = start(SLOW_BUILD, model_path, stdin=subprocess.PIPE)
    assert first.stdout.readline().strip() == "building"
    second = start(SLOW_BUILD, model_path, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert waits(second)
    assert [finish(first), finish(second)] == ["built", "loaded"]
    assert sorted(os.listdir(model_path.parent)) == ["m.onnx", "m.onnx_b1_gpu0_fp32.engine"]


OTHER_DIMS = SLOW_BUILD.replace(
    "ModelConfig(onnx_file=sys.argv[1])",
    "ModelConfig(onnx_file=sys.argv[1].partition('@')[0], "
    "infer_dims=(3, int(sys.argv[1].partition('@')[2]), 6))",
)


@pytest.mark.slow
def test_two_configs_that_start_at_once_take_nothing_from_each_other(tmp_path):
    path = save(image_model(("n", 3, "h", "w")), tmp_path / "m.onnx")
    first = start(OTHER_DIMS, f"{path}@4", stdin=subprocess.PIPE)
    assert first.stdout.readline().strip() == "building"
    second = start(OTHER_DIMS, f"{path}@8", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert waits(second)
    assert [finish(first), finish(second)] == ["built", "built"]
    for height in (4, 8):
        cfg = ModelConfig(onnx_file=path, infer_dims=(3, height, 6))
        assert "loaded" in str(load_or_build(cfg).decisions)


@pytest.mark.parametrize("old_plan", [False, True])
@pytest.mark.sampled
def test_a_writer_killed_half_way_leaves_no_trace(model_path, old_plan):
    target = engine_path(model_path, 1, 0, "fp32")
    if old_plan:
        load_or_build(ModelConfig(onnx_file=model_path))
        os.truncate(target, 100)  # to be replaced
    before = target.read_bytes() if old_plan else None
    process = start(SLOW_WRITE, model_path)
    assert process.stdout.readline().strip() == "half-way"
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stdout.close()
    assert (target.read_bytes() if target.exists() else None) == before
    started = time.monotonic()
    plan = load_or_build(ModelConfig(onnx_file=model_path))
    assert time.monotonic() - started < 20
    assert plan.path == target
    Plan.load(target)
    assert sorted(os.listdir(model_path.parent)) == ["m.onnx", target.name]


KILLED = """
import os, signal, sys
from pathlib import Path
import onnxruntime
import headrace._core.files as store, headrace.infer.model.engine_files as shelf
from headrace.config import ModelConfig
from headrace.infer.model import load_or_build

class Deadly:
    # the n-th call of the operating system's functions is the last one
    def __init__(self, n):
        self.left = n
    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in ("open", "replace", "fsync", "close"):
            return real
        def call(*args, **kw):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            done = real(*args, **kw)
            return done
        return call

model, dims = Path(sys.argv[1]), [(3, 4, 6), (3, 8, 6)]
deaths = n = 0
while True:
    n += 1 if n < 8 else 3  # each place of the first build, some of the second
    child = os.fork()
    if child == 0:
        store.os = shelf.os = Deadly(n)
        for d in dims:
            load_or_build(ModelConfig(onnx_file=model, infer_dims=d), backend="onnxruntime")
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
    deaths += 1
    child = os.fork()
    if child == 0:  # whatever was left behind: this one builds or loads, and leaves no rubbish
        for d in dims:
            plan = load_or_build(ModelConfig(onnx_file=model, infer_dims=d))
            assert plan.inputs[0].shape[1:] == d
        names = [x for x in os.listdir(model.parent) if not x.endswith(".lock")]
        assert len(names) == 3 and not any(".tmp" in x for x in names), names
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, n
    for name in os.listdir(model.parent):
        if name.endswith(".engine"):
            (model.parent / name).unlink()
print(deaths)
"""


@pytest.mark.slow
def test_a_build_killed_anywhere_leaves_a_usable_state(tmp_path):
    path = save(image_model(("n", 3, "h", "w")), tmp_path / "m.onnx")
    assert int(finish(start(KILLED, path))) >= 8


def test_a_lock_that_is_held_for_ever_does_not_block_for_ever(tmp_path):
    target = tmp_path / "a.engine"
    with locked(target) as held:
        assert held
        with locked(target, timeout_s=0.1) as also:
            assert not also
    assert os.listdir(tmp_path) == []


def test_no_lock_where_there_is_no_folder(tmp_path):
    with locked(tmp_path / "no" / "a.engine") as held:
        assert not held
    assert os.listdir(tmp_path) == []


def test_a_symlink_in_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "precious").write_bytes(b"data")
    lock_path(tmp_path / "a.engine").symlink_to(tmp_path / "precious")
    with locked(tmp_path / "a.engine"):
        pass
    assert (tmp_path / "precious").read_bytes() == b"data"


def test_a_failed_write_changes_nothing(tmp_path):
    target = tmp_path / "a.engine"
    write_atomically(target, [b"old"])

    def chunks():
        yield b"new"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_atomically(target, chunks())
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.engine"]


def test_only_ones_own_leftovers_are_removed(tmp_path):
    for name in (".a.engine.0123.tmp", ".b.engine.0123.tmp", "a.engine.tmp"):
        (tmp_path / name).touch()
    with locked(tmp_path / "a.engine"):
        pass
    assert sorted(os.listdir(tmp_path)) == [".b.engine.0123.tmp", "a.engine.tmp"]


@pytest.mark.parametrize("link", [False, True])
def test_a_pipe_keeps_its_place(tmp_path, link):
    """As a device does: a rename onto /dev/null would take it from the whole machine."""
    pipe = target = tmp_path / "pipe"
    os.mkfifo(pipe)
    if link:
        target = tmp_path / "link"
        target.symlink_to(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        write_atomically(target, [b"new"])
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert target.is_symlink() == link
    assert len(os.listdir(tmp_path)) == 1 + link


def test_a_folder_in_which_nothing_can_be_made_is_not_waited_for(tmp_path):
    started = time.monotonic()
    with locked(Path("/proc/a.engine"), timeout_s=20) as held:
        assert not held
    assert time.monotonic() - started < 10


def test_a_pipe_in_place_of_the_lock_is_not_waited_for(tmp_path):
    os.mkfifo(lock_path(tmp_path / "a.engine"))
    with locked(tmp_path / "a.engine", timeout_s=0.1):
        pass


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(13, "Permission denied", "a.txt"), "Permission denied"),
        (OSError("no image in it"), "no image in it"),
        (ValueError("embedded null byte"), "embedded null byte"),
    ],
)
def test_the_reason_of_an_error_is_the_systems_text_without_file_and_number(error, reason):
    assert os_reason(error) == reason


@pytest.mark.parametrize(
    ("path", "reason"),
    [("no/such.bin", "No such file or directory"), ("a\0b", "embedded null byte")],
)
def test_an_error_of_the_system_is_worded(path, reason):
    with (
        pytest.raises(ModelError) as caught,
        os_errors(ModelError, "cannot be read", path, fix="x"),
    ):
        Path(path).read_bytes()
    assert (caught.value.finding.sentence, caught.value.where) == (
        f"cannot be read: {reason}",
        path,
    )
    assert isinstance(caught.value.__cause__, OSError | ValueError)


def test_other_errors_pass_as_they_are():
    with pytest.raises(ModelError, match="is empty"), os_errors(ModelError, "cannot be read"):
        raise ModelError("is empty")


def test_a_second_writer_is_refused_until_the_first_has_closed(tmp_path):
    with (tmp_path / "a").open("w") as first, (tmp_path / "a").open("w") as second:
        assert try_lock(first.fileno())
        with pytest.raises(BlockingIOError):
            try_lock(second.fileno())
        first.close()
        assert try_lock(second.fileno())


def test_a_file_system_without_locks_gives_none(tmp_path):
    read, write = os.pipe()
    os.close(write)
    os.close(read)
    assert not try_lock(read)  # any error but that of a lock that is held


def test_who_waits_is_told_once_and_gets_the_lock_of_one_that_was_killed(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from headrace._core.files import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    holder = start(code, tmp_path / "a.engine")
    assert holder.stdout.readline() == "held\n"
    waits = []

    def wait():
        waits.append(1)
        holder.kill()

    with locked(tmp_path / "a.engine", timeout_s=20, on_wait=wait) as held:
        assert held
    assert waits == [1]
    holder.communicate()
    assert os.listdir(tmp_path) == []


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"water" * 100_000)
    assert hash_file(path) == hash_file(str(path)) == (500_000, sha256_of(b"water" * 100_000))
    with path.open("rb") as file:
        assert hash_file(file) == hash_file(path)
    assert sha256_of(b"wa", memoryview(b"ter")) == sha256_of(b"water")


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_a_part_file_takes_the_name_of_its_target_only_if_it_is_whole(tmp_path, error):
    target = tmp_path / "a.png"
    target.write_text("old")

    def write():
        with PartFile(target) as part:
            part.write_text("new")
            assert part.name == "a.png.part"
            if error:
                raise error

    if error:
        with pytest.raises(error):
            write()
    else:
        write()
    assert target.read_text() == ("old" if error else "new")
    assert os.listdir(tmp_path) == ["a.png"]


def test_a_part_file_that_cannot_be_renamed_is_removed(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError), PartFile(tmp_path / "a") as part:
        part.touch()
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("there", [False, True])
def test_no_file_is_written_through_a_link(tmp_path, there):
    if there:
        (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for durable in (True, False):
        with pytest.raises(OSError, match="it is a link to"):
            write_where_named(tmp_path / "link", b"1", durable=durable)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").exists() == there
    assert not there or (tmp_path / "file").read_bytes() == b"old"


def test_a_part_that_is_a_link_is_not_written_through(tmp_path):
    (tmp_path / "own").write_bytes(b"mine")
    (tmp_path / "a.part").symlink_to(tmp_path / "own")
    with PartFile(tmp_path / "a") as part:
        part.write_bytes(b"new")
    assert (tmp_path / "own").read_bytes() == b"mine"
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_pipe_takes_what_is_written_where_it_was_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_where_named(tmp_path / "pipe", b"data")
    assert os.read(reader, 100) == b"data"
    os.close(reader)
