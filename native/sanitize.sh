#!/bin/sh
# The native tests under AddressSanitizer and UBSan: builds into build/sanitize and runs
# tests/native_abuse.py there, or the SCRIPT that is named.
set -e
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
"$python" -m pip install --quiet --disable-pip-version-check nanobind ninja cmake  # what a build needs
export PATH="$(dirname "$("$python" -c 'import sys; print(sys.executable)')"):$PATH"
cmake -S . -B build/sanitize -G Ninja -DFLEXPHASE_SANITIZE=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DPython_EXECUTABLE="$("$python" -c 'import sys; print(sys.executable)')" >/dev/null
cmake --build build/sanitize
# Python itself is not built with the sanitizer, so its run time is loaded first; Python's own leaks
# at exit are not ours.
library() { ${CXX:-c++} -print-file-name="$1"; }
LD_PRELOAD="$(library libasan.so) $(library libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
    "$python" "${SCRIPT:-tests/native_abuse.py}" build/sanitize "$@"
