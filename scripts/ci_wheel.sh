#!/usr/bin/env bash
# Build and check one wheel, where the packages of the older compiler can be had.
set -euo pipefail
cd "$(dirname "$0")/.."
release=http://deb.debian.org/debian/dists/bullseye/Release
python3 -c "import urllib.request as u; u.urlopen('$release', timeout=20).read(100)" 2>/dev/null \
	|| { echo "no wheel was built: Debian's packages cannot be reached"; exit 0; }
make wheels WHEELS="--machine x86_64 --api cp312"
