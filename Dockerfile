# One static binary in an empty image: no shell, no package manager, nothing to update but einmal itself.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The cache outlives the layer: after a change only what changed is compiled, not the database drivers again.
RUN --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /einmal ./cmd/einmal && mkdir /data

FROM scratch
COPY --from=build /einmal /einmal
# Where an embedded database may be: a new volume that is mounted here belongs to whom its directory in the image does.
COPY --from=build --chown=65532:65532 /data /data
# Numeric, so that Kubernetes' runAsNonRoot can check it without a passwd file.
USER 65532:65532
EXPOSE 8081 8082 8083 8090
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 CMD ["/einmal", "healthcheck"]
ENTRYPOINT ["/einmal"]
CMD ["tickets"]
