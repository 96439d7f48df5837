# syntax=docker/dockerfile:1
# A model over HTTP, answered by NumPy and C alone:
#   docker build -t mpad . && docker run --rm -p 8000:8000 -v "$PWD/my-model:/model:ro" mpad
# Explanations need torch: docker build --build-arg EXPLAIN=yes -t mpad .

FROM python:3.12-slim-bookworm AS build
ARG EXPLAIN=no
# The C kernels are compiled here; they choose AVX2 or AVX-512 when they run. Debian's compiler of the day is right.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
RUN python -m venv /opt/mpad
ENV PATH=/opt/mpad/bin:$PATH
WORKDIR /source
COPY deploy/requirements.txt constraints.txt ./
RUN if [ "$EXPLAIN" = yes ]; then printf 'torch\nscikit-learn\n' >> requirements.txt; fi \
    && pip install --no-cache-dir --constraint constraints.txt --requirement requirements.txt
COPY pyproject.toml README.md LICENSE MANIFEST.in ./
COPY src src
RUN pip install --no-cache-dir --no-deps .

FROM python:3.12-slim-bookworm
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin mpad
COPY --from=build /opt/mpad /opt/mpad
ENV PATH=/opt/mpad/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OMP_NUM_THREADS=1
USER 10001
WORKDIR /
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["mpad", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/model"]
