# Images with the module (docs/containers.md), of what `make release` leaves in target/dist/unpacked:
#
#   server   the official image of Redis or Valkey with the module in it. BASE is another one: a server of 7.0 or later on
#            glibc 2.17 or later. Alpine does not do: its C library is another one
#   files    nothing but the files, and cp: an init container copies them to a server of any image
#
# No RUN: it would need an emulator for an image of another architecture.

# Names in full: podman and buildah do not guess the registry.
ARG BASE=docker.io/library/redis:8

# Linked statically.
FROM docker.io/library/busybox:stable-musl AS busybox

FROM scratch AS files
# The image's architecture in Debian's words (amd64, arm64); builders set it.
ARG TARGETARCH
COPY --from=busybox /bin/cp /bin/cp
COPY target/dist/unpacked/$TARGETARCH/LICENSE-* target/dist/unpacked/$TARGETARCH/THIRD-PARTY \
    target/dist/unpacked/$TARGETARCH/COPYRIGHT-library.html target/dist/unpacked/$TARGETARCH/redis.conf /ratelimit/
COPY --chmod=755 target/dist/unpacked/$TARGETARCH/libredis_ratelimit.so tools/ratelimit-health /ratelimit/
# Kubernetes' runAsNonRoot takes no name.
USER 999:999
CMD ["/bin/cp", "-r", "/ratelimit/.", "/opt/ratelimit/"]

# hadolint ignore=DL3006
FROM ${BASE} AS server
ARG TARGETARCH
COPY target/dist/unpacked/$TARGETARCH/LICENSE-* target/dist/unpacked/$TARGETARCH/THIRD-PARTY \
    target/dist/unpacked/$TARGETARCH/COPYRIGHT-library.html /usr/share/doc/redis-ratelimit/
# Not where the images look for modules themselves (/usr/local/lib/redis/modules, /usr/lib/valkey): there it would be
# loaded twice, which no server survives, and plain Valkey looks nowhere.
COPY --chmod=755 target/dist/unpacked/$TARGETARCH/libredis_ratelimit.so /usr/lib/redis/modules/
COPY --chmod=755 tools/ratelimit-health /usr/local/bin/
VOLUME /data
# The number of the user redis, or valkey, in the official images.
USER 999:999
# Loading gigabytes takes minutes; the first success ends the start period.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10m CMD ["ratelimit-health"]
# The entrypoint of either image puts its server's name before arguments that begin with a dash. Arguments given to
# `docker run` replace these: they name the module too, or a redis.conf that does.
CMD ["--loadmodule", "/usr/lib/redis/modules/libredis_ratelimit.so"]
