"""ONNX's shape inference as a program: a model by standard input, a model by standard output.

It is run by its path, with limits and without any package: ONNX's own core alone is loaded.
"""

import importlib.util
import resource
import sys


def main(core: str, cpu_s: int, memory_bytes: int) -> None:
    """Infer the shapes of one model; prints nothing for one that ONNX refuses."""
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    spec = importlib.util.spec_from_file_location("onnx.onnx_cpp2py_export", core)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = sys.stdin.buffer.read()
    try:
        done = module.shape_inference.infer_shapes(model, False, False, True)
    except MemoryError:
        sys.exit(1)
    except Exception:
        return
    sys.stdout.buffer.write(done)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
