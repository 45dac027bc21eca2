"""headrace compile and includes: unchanged sources and Makefiles, and what is said of failures."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.binary.elf import ElfFile
from headrace.custom import open_library
from headrace.custom.compile import build_library, toolchain
from headrace.custom.compile.build_library import compile_library
from headrace.custom.compile.errors import compile_failed
from headrace.custom.compile.toolchain import find_nvcc, gpu_present, include_dir, make_variables
from headrace.errors import CustomLibraryError
from tests import warm

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")

HEADER = '#include "nvdsinfer_custom_impl.h"\n'
PARSER = """
extern "C" bool NvDsInferParseMine(
    const std::vector<NvDsInferLayerInfo> &layers, const NvDsInferNetworkInfo &,
    const NvDsInferParseDetectionParams &, std::vector<NvDsInferObjectDetectionInfo> &objects) {
    objects.push_back({1, 2, 3, 4, 5, helper()});
    return true;
}
CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(NvDsInferParseMine);
"""
MAKEFILE = """
CUDA_VER?=
ifeq ($(CUDA_VER),)
  $(error "CUDA_VER is not set")
endif
CC:= g++
NVCC:=/usr/local/cuda-$(CUDA_VER)/bin/nvcc
CFLAGS:= -Wall -std=c++11 -shared -fPIC
CFLAGS+= -I/opt/nvidia/deepstream/deepstream-$(NVDS_VERSION)/sources/includes \\
         -I/usr/local/cuda-$(CUDA_VER)/include
LIBS:= -lnvinfer_plugin -lnvinfer -lnvparsers -lnvonnxparser
LIBS+= -L/usr/local/cuda-$(CUDA_VER)/lib64 -lcudart -lcublas -lstdc++fs
LFLAGS:= -shared -Wl,--start-group $(LIBS) -Wl,--end-group
SRCFILES:= parser.cpp helper.cpp
TARGET_LIB:= libnvdsinfer_custom_impl_Mine.so
TARGET_OBJS:= $(SRCFILES:.cpp=.o)
all: $(TARGET_LIB)
%.o: %.cpp Makefile
	$(CC) -c -o $@ $(CFLAGS) $<
$(TARGET_LIB) : $(TARGET_OBJS)
	$(CC) -o $@ $(TARGET_OBJS) $(LFLAGS)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A parser of two files, and a Makefile of the usual shape."""
    (tmp_path / "parser.cpp").write_text(HEADER + "float helper();\n" + PARSER)
    (tmp_path / "helper.cpp").write_text("float helper() { return 0.5f; }\n")
    (tmp_path / "Makefile").write_text(MAKEFILE)
    return tmp_path


def refusal(*sources: Path, **options: object) -> str:
    with pytest.raises(CustomLibraryError) as caught:
        compile_library(sources, sources[0].parent / "lib.so", **options)  # type: ignore[arg-type]
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(("generation", "size"), [("9.x", 28), ("6.x", 24)])
@pytest.mark.sampled
def test_both_views(project: Path, generation: str, size: int, layers, network, params) -> None:
    result = compile_library(
        [project / "parser.cpp", project / "helper.cpp"],
        project / "lib.so",
        generation=generation,  # type: ignore[arg-type]
    )
    assert len(result.commands) == 3
    library = open_library(result.library)
    found = library.bbox_parser("NvDsInferParseMine")(layers, network, params)
    assert found.boxes.tolist() == [[2, 3, 4, 5]]
    assert f"{size}-byte boxes" in repr(library)


@pytest.mark.slow
@pytest.mark.parametrize("generation", ["9.x", "6.x"])
@pytest.mark.sampled
def test_a_usual_makefile_runs_unchanged(project: Path, generation: str) -> None:
    printed = headrace("includes", "--make", "--generation", generation)
    done = subprocess.run(
        ["make", *printed.split()], cwd=project, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    elf = ElfFile.read(project / "libnvdsinfer_custom_impl_Mine.so")
    assert "NvDsInferParseMine" in elf.exported()
    assert f"headrace_abi_box_bytes_{28 if generation == '9.x' else 24}" in elf.exported()
    assert not any("nvinfer" in name for name in elf.needed)


@pytest.mark.slow
def test_a_makefile_with_kernels_takes_host_files(project: Path) -> None:
    """As on a machine without nvcc."""
    tool = include_dir().parent / "bin" / "nvcc-host"
    (project / "helper.cpp").rename(project / "helper_host.cpp")
    (project / "helper.cu").write_text("__global__ void k() {}\n")
    rule = "\t$(NVCC) -c -o $@ --compiler-options '-fPIC' -gencode arch=compute_75,code=sm_75 $<\n"
    (project / "Makefile").write_text(
        MAKEFILE.replace("parser.cpp helper.cpp", "parser.cpp helper.cu").replace(
            "TARGET_OBJS:= $(SRCFILES:.cpp=.o)",
            "TARGET_OBJS:= $(patsubst %.cu,%.o,$(SRCFILES:.cpp=.o))",
        )
        + "%.o: %.cu\n"
        + rule
    )
    printed = headrace("includes", "--make").split()
    assert gpu_present() or f"NVCC={tool}" in printed

    def make(**env: str) -> subprocess.CompletedProcess[str]:
        command = ["make", *printed, f"NVCC={tool}"]
        return subprocess.run(
            command,
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
            env=dict(os.environ) | env,
        )

    done = make()
    assert done.returncode == 0, done.stderr
    assert open_library(project / "libnvdsinfer_custom_impl_Mine.so").symbols()
    (project / "helper.o").unlink()
    (project / "helper_host.cpp").unlink()
    assert find_nvcc() or "helper_host.cpp" in make().stderr
    # where there is an nvcc, a file without a counterpart is its
    nvcc = project / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text('#!/bin/sh\necho "nvcc $*"\nexec g++ -fPIC -x c++ -D__global__= -c -o $3 $8\n')
    nvcc.chmod(0o755)
    done = make(CUDA_HOME=str(project / "cuda"))
    assert done.returncode == 0, done.stderr
    assert "nvcc -c -o helper.o" in done.stdout
    assert "no GPU" in done.stderr


def test_makefiles_are_told_the_nvcc_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Makefile looks for it in a folder that CUDA_VER names, and there is none of that name."""
    for file in ("bin/nvcc", "include/cuda_runtime.h"):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).touch()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(toolchain, "gpu_present", lambda: True)
    told = toolchain.make_variables()
    assert told["NVCC"] == str(tmp_path / "bin" / "nvcc")
    assert told["CPATH"].split(":") == [str(tmp_path / "include"), str(include_dir())]
    assert told["LIBRARY_PATH"].split(":")[0] == str(tmp_path / "lib64")
    monkeypatch.setattr(toolchain, "gpu_present", lambda: False)
    told = toolchain.make_variables()
    assert told["NVCC"] == str(include_dir().parent / "bin" / "nvcc-host")
    assert told["CPATH"] == str(include_dir())


@pytest.mark.slow
def test_the_makefile_runs_with_variables_of_the_shell(project: Path) -> None:
    script = headrace("includes", "--shell") + "make"
    clean = {k: v for k, v in os.environ.items() if k not in make_variables()}
    subprocess.run(["bash", "-c", script], cwd=project, env=clean, check=True, capture_output=True)
    assert (project / "libnvdsinfer_custom_impl_Mine.so").is_file()


def test_without_the_variables_the_makefile_refuses(project: Path) -> None:
    """What the variables are for; otherwise the tests above show nothing."""
    done = subprocess.run(["make"], cwd=project, capture_output=True, check=False)
    assert done.returncode != 0


@pytest.mark.slow
def test_printed_flags_are_enough_for_a_compiler(project: Path) -> None:
    flags = shlex.split(headrace("includes")) + shlex.split(headrace("includes", "--libs"))
    command = [
        "g++",
        "-shared",
        "-fPIC",
        "parser.cpp",
        "helper.cpp",
        *flags,
        "-lnvinfer",
        "-o",
        "l.so",
    ]
    subprocess.run(command, cwd=project, check=True)


def test_a_function_of_the_users_own_is_no_part_of_tensorrt() -> None:
    for name in ("bytes_of(nvinfer1::DataType)", "nvinfer1::createOf(int)"):
        found = f"x.o: in function `f':\nx.cpp: undefined reference to `{name}'\n"
        text = str(compile_failed(found, None, "g++", []))
        assert "compile" in text
        assert "do not have this part" not in text


def test_a_template_of_the_file_beside_is_named_alone(tmp_path: Path) -> None:
    (tmp_path / "add.cu").write_text("template <typename T> void add(const T *x) {}\n")
    found = "undefined reference to `void of::add<float>(float const*)'\n"
    text = str(compile_failed(found, None, "g++", [tmp_path / "plugin.cpp"]))
    assert "add.cu beside it defines add: compile it too" in text
    assert "another file" not in text


@pytest.mark.slow
def test_what_a_toolkit_lacks_is_asked_for_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc = find_nvcc()
    if nvcc is None or list(Path(nvcc).parents[1].rglob("cublas_v2.h")):
        pytest.skip("no nvcc, or it has cuBLAS")
    source = tmp_path / "scale.cu"
    text = '#include "cublas_v2.h"\n#include "cudnn.h"\n__global__ void f(float *x) { *x = 2; }\n'
    source.write_text(text)
    compile_library([source], tmp_path / "named.so")
    assert (tmp_path / "named.so").is_file()
    source.write_text(text + "void g(cublasHandle_t h, float *x) { cublasSscal(h, 1, x, x, 1); }\n")
    result = compile_library([source], tmp_path / "scale.so", cuda="nvcc")
    (notice,) = (n for n in result.notices if n.code == "toolkit-absent")
    (needed,) = notice.data["libraries"]
    assert needed in ElfFile.read(tmp_path / "scale.so").needed
    assert needed.startswith("libcublas.so.")
    monkeypatch.setattr(build_library, "gpu_present", lambda: True)
    message = refusal(source)  # beside a GPU the toolkit is to have it
    assert "nothing defines cublasSscal_v2" in message
    assert "libcublas" in message


CUB = """
#include <cub/cub.cuh>
__global__ void f(float *x) {
    using Reduce = cub::BlockReduce<float, 32>;
    __shared__ typename Reduce::TempStorage a, b, c;
    const float sum = Reduce(a).Reduce(*x, cub::Sum()), low = Reduce(b).Reduce(*x, cub::Min());
    *x = sum + low + Reduce(c).Reduce(*x, cub::Max());
}
"""


@pytest.mark.slow
@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc")
def test_operators_of_cub_before_cuda_13_compile(tmp_path: Path) -> None:
    source = tmp_path / "sum.cu"
    source.write_text(CUB)
    compile_library([source], tmp_path / "sum.so", cuda="nvcc")


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("#if !(defined(SM72) || \\\n    defined SM75)", "-D SM72, -D SM75"),
        ("#if 0\n#endif\n# ifndef SM80 // or so", "-D SM80"),
        ("#if 1", ""),
        ("#ifndef SM80\n#else", ""),
    ],
)
def test_a_macro_that_a_header_asks_for_is_named(
    tmp_path: Path, condition: str, names: str
) -> None:
    header = tmp_path / "kernels.h"
    lines = f"// sizes\n{condition}\n\n#error one of them is to be defined"
    header.write_text(f"{lines}\n#endif\n")
    output = f"{header}:{lines.count(chr(10)) + 1}:2: error: #error one of them is to be defined\n"
    text = str(compile_failed(output, tmp_path / "a.cpp", "g++", [tmp_path / "a.cpp"]))
    assert (f"the header asks for one of these: {names}\n" in text) == bool(names)
    assert ("asks for one" in text) == bool(names)


@pytest.mark.slow
def test_a_function_that_two_files_define_is_named(project: Path) -> None:
    (project / "again.cpp").write_text("float helper() { return 1; }\n")
    message = refusal(*(project / f"{name}.cpp" for name in ("parser", "helper", "again")))
    assert "helper() is defined twice" in message
    assert "leave one of them out" in message


@pytest.mark.slow
def test_a_missing_function_is_found_in_the_file_beside(project: Path) -> None:
    message = refusal(project / "parser.cpp")
    assert "nothing defines helper()" in message
    assert "helper.cpp beside it defines helper: compile it too" in message


@pytest.mark.parametrize(
    ("body", "options", "words"),
    [
        ("#include <opencv2/core.hpp>\n", {}, "libopencv-dev"),
        ("#include <thrust/device_vector.h>\n", {}, "code for the GPU"),
        ("#include <cusolverDn.h>\n", {}, "CUDA toolkit"),
        ('#include "nowhere.h"\n', {}, "-I <folder>"),
        ("float f(NvDsInferObjectDetectionInfo b) { return b.rotation_angle; }\n",
         {"generation": "6.x"}, "generation 9.x"),
        ("nvinfer1::INoSuchThing *f() { return nullptr; }\n", {}, "onnx-file"),
        ("void f(const char *c) { char *p = c; p[0] = 1; }\n", {}, "-fpermissive"),
        ("void f() { std::cout << 1; }\n", {}, "-include iostream"),
    ],
)  # fmt: skip
@pytest.mark.sampled
def test_what_does_not_compile_is_explained(
    tmp_path: Path, body: str, options: dict[str, object], words: str
) -> None:
    source = tmp_path / "parser.cpp"
    source.write_text(HEADER + body)
    message = refusal(source, **options)
    assert f"{source}: the source does not compile" in message
    assert words in message
    assert "the command was:" in message


@pytest.mark.slow
def test_a_forgotten_include_of_the_cuda_runtime_is_no_code_for_the_gpu(tmp_path: Path) -> None:
    source = tmp_path / "parser.cpp"
    called = 'extern "C" void f(void *p) { if (cudaFree(p) != cudaSuccess) cudaGetLastError(); }\n'
    source.write_text(called)
    message = refusal(source)
    assert "--flag '-include cuda_runtime_api.h'" in message
    assert "leave the file out" not in message
    compile_library([source], tmp_path / "lib.so", flags=["-include", "cuda_runtime_api.h"])
    source.write_text(called + "__global__ void k() {}\n")
    message = refusal(source)
    assert "if parsers do not need the file, leave it out" in message
    assert "-include" not in message
    source.write_text(HEADER + "void f() { cudaGraphicsMapResources(1, 0); }\n")
    assert "leave it out" in refusal(source), "headrace's headers have no such function"


@pytest.mark.slow
def test_host_file_stands_for_cuda_code(tmp_path: Path) -> None:
    source, kernel = tmp_path / "p.cpp", tmp_path / "kernels.cu"
    source.write_text(HEADER + "float helper();\n" + PARSER)
    kernel.write_text("__global__ void k() {}\nfloat helper() { k<<<1, 1>>>(); return 0.1f; }\n")
    assert "kernels_host.cpp beside it" in refusal(source, kernel, cuda="host")
    (tmp_path / "kernels_host.cpp").write_text("float helper() { return 0.25f; }\n")
    result = compile_library([source, kernel], tmp_path / "lib.so", cuda="host")
    assert [n.sentence for n in result.notices] == ["kernels_host.cpp is compiled instead"]
    both = [source, kernel, tmp_path / "kernels_host.cpp"]
    assert len(compile_library(both, tmp_path / "lib.so", cuda="host").commands) == 3


@pytest.mark.parametrize("kind", ["folder", "header", "absent", "text"])
def test_what_is_no_source(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.h").write_text("")
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "a.cpp").write_text("")
    names = {"folder": ".", "header": "a.h", "absent": "b.cpp", "text": "a.txt"}
    words = {"folder": "a.cpp", "header": "-I", "absent": "does not exist", "text": "no C++ source"}
    assert words[kind] in refusal(tmp_path / names[kind])


def test_only_a_library_is_replaced(tmp_path: Path) -> None:
    source = tmp_path / "own.cpp"
    source.write_text('extern "C" int own() { return 1; }\n')
    notes = tmp_path / "notes.txt"
    notes.write_text("kept")
    for target in (source, notes):
        before = target.read_text()
        with pytest.raises(CustomLibraryError, match="is there already and is no library"):
            compile_library([source], target)
        assert target.read_text() == before
    library = tmp_path / "libown.so"
    for _ in range(2):  # an older library is replaced
        assert compile_library([source], library).library.read_bytes()[:4] == b"\x7fELF"


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.cpp").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert "apt install g++" in refusal(tmp_path / "a.cpp")


def headrace(*arguments: str) -> str:
    done = warm.headrace(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_missing_headers_of_gstreamer_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "pkg-config"
    tool.write_text("#!/bin/sh\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CustomLibraryError, match="needs its headers"):
        toolchain.package_flags(toolchain.GSTREAMER, "--cflags")


def test_compiling_loads_no_arrays() -> None:
    code = (
        "import sys, headrace.cli.compile, headrace.custom.compile.build_library, "
        "headrace.binary.entry_points; print({'numpy', 'onnx', 'onnxruntime'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_a_module_does_not_hide_the_function_of_its_name() -> None:
    code = (
        "import headrace.custom.user_calls; "
        "from headrace.custom import checked; print(callable(checked))"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "True\n"


def test_errors_in_macros_are_told_with_the_line_that_uses_them(tmp_path: Path) -> None:
    source = tmp_path / "m.cpp"
    source.write_text(
        HEADER
        + "#define INNER(x) int x((\n#define OUTER(x) INNER(x)\nOUTER(z);\nint y = missing;\n"
    )
    with pytest.raises(CustomLibraryError) as error:
        compile_library([source], tmp_path / "libm.so", compiler="g++")
    told = error.value.finding.sentence.splitlines()
    assert f"      in expansion of macro 'OUTER' at {source}:4: OUTER(z);" in told
    assert "in expansion of macro 'INNER'" not in error.value.finding.sentence, (
        "that is in the macro's own line"
    )
    (plain,) = [i for i, line in enumerate(told) if "missing" in line]
    assert told[plain + 1 :] == []


@pytest.mark.slow
def test_a_static_copy_of_the_cpp_library_stays_its_own(tmp_path: Path) -> None:
    source = tmp_path / "s.cpp"
    streams = (
        "#include <sstream>\nstatic float helper() { std::ostringstream s;"
        " s << 12345ul << ' ' << 0.5; return float(s.str().size()); }\n"
    )
    source.write_text(HEADER + streams + PARSER)
    made = compile_library(
        [source], tmp_path / "libs.so", flags=["-w"], links=["-static-libstdc++"]
    )
    elf = ElfFile.read(made.library)
    assert "libstdc++.so.6" not in elf.needed
    assert [n for n in elf.exported() if n.startswith("_ZNSt") and n.endswith("2idE")] == []
    code = f"""
import numpy as np
from headrace.custom import open_library
from headrace.meta import DetectionParams, Layer, NetworkInfo

parse = open_library({str(made.library)!r}).bbox_parser("NvDsInferParseMine")
layers = {{"o": Layer("o", np.zeros((1, 4), np.float32))}}
found = parse(layers, NetworkInfo(4, 4, 3), DetectionParams(9, np.zeros(9, np.float32)))
print(found.scores.tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[9.0]\n", done.stderr
