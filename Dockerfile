# docker build -t flexphase . && mkdir -p runs
# docker run --rm --user "$(id -u):$(id -g)" -v "$PWD/runs:/work/runs" flexphase train rbm
# development: what `make` needs, for .devcontainer; build: a wheel; the last stage: that wheel alone.
FROM python:3.12-bookworm AS development
RUN apt-get update \
    && apt-get install -y --no-install-recommends make g++ git chromium chromium-driver \
    && rm -rf /var/lib/apt/lists/*
# Debian has a python3.11 of its own, without venv, which the Makefile would prefer.
ENV PYTHON=/usr/local/bin/python3
WORKDIR /workspaces/flexphase

FROM python:3.12-bookworm AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.12-slim-bookworm
COPY --from=build /wheels /wheels
COPY tools/check_install.py /tmp/check_install.py
RUN pip install --no-cache-dir /wheels/*.whl "scikit-learn>=1.6" "pooch>=1.8" \
        "dask>=2024.1" "distributed>=2024.1" \
    && python -P /tmp/check_install.py native \
    && useradd flexphase && install -d -o flexphase /work
USER flexphase
# Caches go where every --user may write.
ENV HOME=/tmp
WORKDIR /work
ENTRYPOINT ["flexphase"]
