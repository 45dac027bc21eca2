"""Headers and library of one generation: code that was compiled with others is told, or refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from headrace._core.errors import HeadraceError
from headrace.binary.elf import ElfFile
from headrace.binary.entry_points import export_hints
from headrace.custom.compile.toolchain import include_dir, link_dir, run_folders
from headrace.gstreamer.elements.programs import check_layout

OWN = '#include "nvdsmeta.h"'
FOREIGN = "void *nvds_create_batch_meta(unsigned most); int nvds_destroy_batch_meta(void *batch);"
BODY = """
#include <stdio.h>
int main(void) {
    for (int i = 0; i < 2; i++) {
        void *batch = (void *)nvds_create_batch_meta(1);
        puts(batch == 0 ? "none" : "batch");
        if (batch != 0) nvds_destroy_batch_meta(batch);
    }
    return 0;
}
"""
OLD_MARK = FOREIGN + (
    '\n__asm__(".pushsection .note.headrace, \\"a\\", %note\\n"'
    '".long 9, 4, 1\\n.asciz \\"headrace\\"\\n.balign 4\\n.asciz \\"8.0\\"\\n.popsection\\n");'
)


def built(folder: Path, head: str, *flags: str) -> Path:
    """A program that makes a batch twice."""
    (folder / "program.c").write_text(head + BODY)
    program = folder / "program"
    command = ["gcc", folder / "program.c", "-o", program, f"-I{include_dir()}", f"-L{link_dir()}",
               *flags, "-lnvds_meta"]  # fmt: skip
    subprocess.run(command, check=True)
    return program


def run(program: Path) -> tuple[list[str], str]:
    paths = os.pathsep.join(map(str, run_folders()))
    done = subprocess.run(
        [program], env=os.environ | {"LD_LIBRARY_PATH": paths}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return done.stdout.split(), done.stderr


def of_release(release: str) -> str:
    return f"-Wl,-rpath,/opt/nvidia/deepstream/deepstream-{release}/lib"


@pytest.mark.parametrize("flags", [(), (of_release("6.2"),), ("-O2", "-s"), ("-Wl,--gc-sections",)])
def test_the_mark_of_the_headers_is_enough(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = built(tmp_path, OWN, *flags)
    check_layout(ElfFile.read(program))
    assert run(program) == (["batch", "batch"], "")


def test_code_without_a_mark_is_told_once(tmp_path: Path) -> None:
    program = built(tmp_path, FOREIGN)
    check_layout(ElfFile.read(program))
    lines, said = run(program)
    assert lines == ["batch", "batch"]
    assert said.startswith(f"warning: {program} carries no mark of headrace's headers")
    assert said.count("\n") == 1


def test_a_path_of_a_release_with_the_same_layout_is_believed(tmp_path: Path) -> None:
    program = built(tmp_path, FOREIGN, of_release("9.0"))
    check_layout(ElfFile.read(program))
    assert run(program) == (["batch", "batch"], "")


@pytest.mark.parametrize(
    ("head", "release", "flags"),
    [
        (FOREIGN, "6.2", (of_release("6.2"),)),
        (FOREIGN, "7.1", (of_release("7.1"), "-Wl,--disable-new-dtags")),
        (OLD_MARK, "8.0", ()),
    ],
)
def test_another_layout_gets_no_metadata(
    tmp_path: Path, head: str, release: str, flags: tuple[str, ...]
) -> None:
    program = built(tmp_path, head, *flags)
    with pytest.raises(HeadraceError, match=rf"compiled with headers of {release}") as raised:
        check_layout(ElfFile.read(program))
    assert "NvDsObjectMeta has 552 bytes, 544 in" in str(raised.value)
    lines, said = run(program)
    assert lines == ["none", "none"]
    assert said.startswith(f"error: {program} was compiled with headers of {release},")
    assert said.count("\n") == 1


def test_a_library_is_judged_by_its_own_mark(tmp_path: Path) -> None:
    """A program of the right headers loads one of older ones."""
    (tmp_path / "old.c").write_text(
        f"{FOREIGN}\nvoid *make(void) {{ return nvds_create_batch_meta(1); }}"
    )
    library = tmp_path / "libold.so"
    command = ["gcc", "-shared", "-fPIC", tmp_path / "old.c", "-o", library, f"-L{link_dir()}",
               of_release("6.4"), "-lnvds_meta"]  # fmt: skip
    subprocess.run(command, check=True)
    program = built(
        tmp_path,
        f"{OWN}\nextern void *make(void);\n#define nvds_create_batch_meta(n) (i ? make() : "
        "nvds_create_batch_meta(n))",
        str(library),
        f"-Wl,-rpath,{tmp_path}",
    )
    lines, said = run(program)
    assert lines == ["batch", "none"]
    assert said.startswith(f"error: {library} was compiled with headers of 6.4,")


def test_a_plugin_of_gstreamer_is_named_for_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "plugin.c").write_text("void *gst_plugin_example_get_desc(void) { return 0; }")
    command = ["gcc", "-shared", tmp_path / "plugin.c", "-o", tmp_path / "libexample.so"]
    subprocess.run(command, check=True)
    (hint,) = export_hints(ElfFile.read(tmp_path / "libexample.so"))
    assert "GST_PLUGIN_PATH" in hint


def test_a_library_of_a_tracker_is_named_for_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "mot.c").write_text("int NvMOT_Process(void) { return 0; }")
    command = ["gcc", "-shared", tmp_path / "mot.c", "-o", tmp_path / "libmot.so"]
    subprocess.run(command, check=True)
    (hint,) = export_hints(ElfFile.read(tmp_path / "libmot.so"))
    assert "ll-lib-file" in hint
