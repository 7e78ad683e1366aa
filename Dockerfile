# The gateway alone: `docker build -t arion-tds .`, then
# `docker run --read-only --tmpfs /tmp -p 8080:8080 -v ./gateway.yaml:/etc/arion-tds/gateway.yaml:ro arion-tds`
# (in the config listen on 0.0.0.0). With code mode: --build-arg EXTRAS=tokens,code-mode (96 MB more).
FROM python:3.12-slim AS build
ARG EXTRAS=tokens
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY arion_tds arion_tds
COPY control_plane_example control_plane_example
RUN python -m venv /opt/arion-tds \
    && /opt/arion-tds/bin/pip install --no-cache-dir --no-compile ".[${EXTRAS}]" \
    && /opt/arion-tds/bin/python -m compileall -q /opt/arion-tds/lib \
    && /opt/arion-tds/bin/pip uninstall --yes --quiet pip

FROM python:3.12-slim
COPY --from=build /opt/arion-tds /opt/arion-tds
ENV PATH=/opt/arion-tds/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# Nobody: writes nowhere but to the volumes that it is given.
USER 65532:65532
EXPOSE 8080 9901
ENTRYPOINT ["arion-tds"]
CMD ["serve", "-c", "/etc/arion-tds/gateway.yaml"]
