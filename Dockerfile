# tidegate in a container, built from this checkout: docker build -t tidegate .
#   docker run --rm -v "$PWD:/work" tidegate compare gcc fixed --duration 20s --out out/first
# `make dist` does its steps in a plain Debian, since not every machine that builds has a container engine.
FROM rust:1-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv
WORKDIR /source
COPY . .
RUN python3 -m venv /tools && /tools/bin/pip wheel --no-deps --wheel-dir /wheels .

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN python3 -m venv /opt/tidegate && /opt/tidegate/bin/pip install --no-cache-dir /wheels/*.whl && rm -r /wheels
ENV PATH=/opt/tidegate/bin:$PATH
WORKDIR /work
ENTRYPOINT ["tidegate"]
CMD ["--help"]
