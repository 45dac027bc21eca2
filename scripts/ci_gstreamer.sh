#!/usr/bin/env bash
# GStreamer for the tests of its elements, where packages can be installed; without it they skip.
set -uo pipefail
cd "$(dirname "$0")/.."
packages=$(grep -oE '(python3-g(i|st-1.0)|gir1\.2-[a-z0-9.-]+|gstreamer1\.0-[a-z-]+)' src/headrace/gstreamer/pyds/loading.py | sort -u)
packages="$packages gstreamer1.0-python3-plugin-loader"
# shellcheck disable=SC2086
dpkg -s $packages >/dev/null 2>&1 && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "GStreamer's tests will skip: it is not installed"; exit 0; }
export DEBIAN_FRONTEND=noninteractive
timeout 60 apt-get update -qq >/dev/null 2>&1
# shellcheck disable=SC2086
timeout 240 apt-get install -y -qq --no-install-recommends $packages >/dev/null 2>&1 \
	&& echo "GStreamer is installed" || echo "GStreamer's tests will skip: it could not be installed"
