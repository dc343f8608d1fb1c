#!/bin/sh
# Rebuild the extension and put it where this Python loads it from (after one
# `pip install --no-build-isolation -e .`). The file is replaced, not overwritten, so that processes
# that have it loaded go on.
set -e
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
build=build/native
executable=$("$python" -c 'import sys; print(sys.executable)')
[ -f $build/build.ninja ] ||
    cmake -S . -B $build -G Ninja -DPython_EXECUTABLE="$executable" >/dev/null
cmake --build $build
where=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/flexphase
for so in $build/_native*.so; do
    cp "$so" "$where/.${so##*/}.part"
    mv "$where/.${so##*/}.part" "$where/${so##*/}"
done
