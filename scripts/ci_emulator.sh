#!/usr/bin/env bash
# What runs libraries for AArch64, and compiles them for the tests; without it these skip.
set -uo pipefail
packages="qemu-user libc6-arm64-cross libstdc++6-arm64-cross g++-aarch64-linux-gnu"
[ "$(uname -m)" = x86_64 ] || exit 0
# shellcheck disable=SC2086
dpkg -s $packages >/dev/null 2>&1 && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "tests of libraries for AArch64 will skip: no emulator"; exit 0; }
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
timeout 240 apt-get install -y -qq --no-install-recommends $packages >/dev/null 2>&1 \
	&& echo "an emulator of AArch64 is installed" || echo "tests of libraries for AArch64 will skip: no emulator"
