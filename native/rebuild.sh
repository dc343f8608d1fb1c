#!/bin/sh
# Rebuild the extension and put it where this Python loads it from (after one `make install`, which
# builds everything anew). The file is replaced, not overwritten, so that processes
# that have it loaded go on.
set -e
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
build=build/native
"$python" -m pip install --quiet --disable-pip-version-check nanobind ninja cmake  # what a build needs
export PATH="$(dirname "$("$python" -c 'import sys; print(sys.executable)')"):$PATH"
executable=$("$python" -c 'import sys; print(sys.executable)')
[ -f $build/build.ninja ] ||
    cmake -S . -B $build -G Ninja -DPython_EXECUTABLE="$executable" >/dev/null
cmake --build $build
# Under the name that it has there: a second one beside it (abi3 or not) would hide later installs.
find='from importlib.util import find_spec; print(find_spec("flexphase._native").origin)'
installed=$("$python" -P -c "$find")
cp $build/_native*.so "$installed.part"
mv "$installed.part" "$installed"
