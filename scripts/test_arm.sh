#!/usr/bin/env bash
# The kernels' tests on 64-bit ARM, in an emulator: Debian's Python, PyPI's wheels, the ARM wheel.
# What needs a model is left out: ONNX Runtime does not start in Debian's emulator.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
arm=build/arm
for needed in qemu-aarch64 debootstrap; do
	command -v $needed > /dev/null || { echo "no $needed: apt install qemu-user debootstrap"; exit 1; }
done
if [ ! -x $arm/debian/usr/bin/python3.11 ]; then
	mkdir -p $arm
	debootstrap --download-only --arch arm64 --variant=minbase --include=python3,libstdc++6 \
		bookworm "$PWD/$arm/debian" > $arm/debootstrap.log
	for package in $arm/debian/var/cache/apt/archives/*.deb; do dpkg -x "$package" $arm/debian; done
fi
[ -e $arm/debian/lib/ld-linux-aarch64.so.1 ] || { echo "$arm/debian is not whole: remove it"; exit 1; }
wheel=$(ls dist/headrace-*-cp311-*aarch64.whl 2> /dev/null || true)
[ -n "$wheel" ] || { echo "no ARM wheel in dist: make wheels WHEELS='--machine aarch64 --api cp311'"; exit 1; }
rm -rf $arm/packages
platforms=$(printf -- '--platform manylinux_2_%s_aarch64 ' 28 27 17)
$python -m pip --disable-pip-version-check install --quiet --no-deps --target $arm/packages $platforms \
	--python-version 3.11 --only-binary=:all: "$wheel" numpy av click rich markdown-it-py mdurl msgspec \
	PyYAML Pillow jinja2 markupsafe onnx onnx-ir ml-dtypes protobuf typing-extensions sympy mpmath \
	pytest pluggy iniconfig packaging pygments hypothesis sortedcontainers attrs
# a child Python would need binfmt_misc
PYTHONPATH=$arm/packages qemu-aarch64 -L $arm/debian $arm/debian/usr/bin/python3.11 -m pytest -q \
	-p no:cacheprovider -k "not forked_child" tests/infer/test_preprocess.py tests/infer/test_preprocess_crops.py \
	tests/infer/test_cluster.py tests/infer/test_cluster_rotated.py tests/infer/test_cluster_config.py \
	tests/infer/parsers/test_boxes_scan.py tests/infer/parsers/test_class_maps.py
