# docker build -t flexphase . && docker run --rm -v "$PWD/runs:/work/runs" flexphase demo
# development: what `make` needs, for .devcontainer; build: a wheel; the last stage: that wheel alone.
FROM python:3.12-bookworm AS development
RUN apt-get update \
    && apt-get install -y --no-install-recommends make g++ git chromium chromium-driver \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /workspaces/flexphase

FROM python:3.12-bookworm AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.12-slim-bookworm
COPY --from=build /wheels /wheels
COPY tools/check_install.py /tmp/check_install.py
RUN pip install --no-cache-dir /wheels/*.whl "scikit-learn>=1.6" "pooch>=1.8" \
    && python -P /tmp/check_install.py native \
    && useradd --create-home flexphase && install -d -o flexphase /work
USER flexphase
WORKDIR /work
ENTRYPOINT ["flexphase"]
