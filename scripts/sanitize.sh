#!/bin/sh
# Compile the native core with AddressSanitizer, UndefinedBehaviorSanitizer and LeakSanitizer, and run
# the tests of custom libraries with it.
# usage: sanitize.sh PYTHON INCLUDE [pytest arguments]
set -eu
cd "$(dirname "$0")/.."
python=$1 include=$2
shift 2
build=build/sanitize
asan=$(g++ -print-file-name=libasan.so) ubsan=$(g++ -print-file-name=libubsan.so)
[ "$asan" != libasan.so ] || { echo "error: g++ has no libasan" >&2; exit 1; }

cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHEADRACE_SANITIZE=ON \
    -DHEADRACE_AARCH64_CXX=OFF \
    -DPython_EXECUTABLE="$python" -DPython_INCLUDE_DIR="$include" \
    -Dnanobind_DIR="$("$python" -m nanobind --cmake_dir)" >$build.log 2>&1 ||
    { cat $build.log >&2; exit 1; }
cmake --build $build

# detect_leaks: frames beyond the nearest are not looked at, since everything is called by Python.
run() {
    HEADRACE_SANITIZED=$PWD/$build LD_PRELOAD="$asan $ubsan" PYTHONMALLOC=malloc \
    ASAN_OPTIONS=detect_leaks=1:malloc_context_size=3:allocator_may_return_null=1:detect_stack_use_after_return=0 \
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
    LSAN_OPTIONS=suppressions=$PWD/scripts/sanitize.supp:print_suppressions=0 \
    "$python" -m pytest -q -n0 -p tests.sanitized "$@"
}

# Now and then LeakSanitizer itself crashes at the end, in its tracer ("Tracer caught signal 11").
# Whether anything leaked is not known then, so everything runs once more; twice at most.
for attempt in 1 2 3; do
    code=0
    run "$@" 2>$build.err || code=$?
    cat $build.err >&2
    if [ $code -eq 0 ] || ! grep -q "LeakSanitizer has encountered a fatal error" $build.err; then
        exit $code
    fi
    echo "LeakSanitizer crashed (run $attempt of 3)" >&2
done
exit $code
