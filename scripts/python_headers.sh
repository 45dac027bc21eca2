#!/bin/sh
# Print the include folder of the Python headers; fetch them into FOLDER if this machine has none.
# Debian's python3 comes without Python.h. Its package can be downloaded and unpacked without root.
# usage: python_headers.sh PYTHON FOLDER
set -eu
python=$1 folder=$2
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include", "posix_prefix"))')
[ -f "$include/Python.h" ] && { echo "$include"; exit 0; }
name=python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if ! [ -f "$folder/usr/include/$name/Python.h" ] && command -v apt-get >/dev/null; then
    echo "Python.h is missing: unpacking Debian's lib$name-dev into $folder" >&2
    mkdir -p "$folder/deb"
    (cd "$folder/deb" && apt-get download -qq "lib$name-dev" >&2 && dpkg -x ./lib*.deb .. &&
        # the packaged pyconfig.h only points at the one of this architecture, by an absolute place
        cp ../usr/include/*-linux-*/"$name"/pyconfig.h "../usr/include/$name/pyconfig.h") || true
fi
if ! [ -f "$folder/usr/include/$name/Python.h" ]; then
    echo "error: no Python.h for $name, and its package could not be downloaded" >&2
    echo "  install the Python headers (Debian: apt-get update && apt-get install $name-dev)" >&2
    exit 1
fi
echo "$folder/usr/include/$name"
