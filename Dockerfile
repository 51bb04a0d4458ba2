# The official image of Redis or Valkey with the module in it (docs/containers.md):
#
#   docker build -t redis-ratelimit .
#   docker build -t valkey-ratelimit --build-arg BASE=docker.io/valkey/valkey:9 .
#   docker run --rm -p 127.0.0.1:6379:6379 redis-ratelimit
#
# BASE is any image of Debian 12 or later with a server of 7.0 or later. Alpine does not do: its C library is another one.

# Names in full: podman and buildah do not guess the registry.
ARG BASE=docker.io/library/redis:8
ARG RUST=1

# Debian 12 has the oldest glibc of all bases: a module that was built against a newer one than the server's does not load.
# The compiler always runs on the builder's own architecture and compiles for the image's. Emulated, it would take an hour.
FROM --platform=$BUILDPLATFORM docker.io/library/rust:${RUST}-bookworm AS build
# The image's architecture in Debian's words (amd64, arm64); builders set it.
ARG TARGETARCH
WORKDIR /build
# bindgen reads Redis' header with libclang. For another architecture than the builder's, cargo learns here which linker
# to call, and clang where the headers of the C library are.
# hadolint ignore=DL3008
RUN case "$TARGETARCH" in \
        amd64) machine=x86_64 gcc=gcc-x86-64-linux-gnu ;; \
        arm64) machine=aarch64 gcc=gcc-aarch64-linux-gnu ;; \
        *) echo "the image is for amd64 or arm64, not for '$TARGETARCH'" >&2; exit 1 ;; \
    esac \
    && mkdir .cargo \
    && printf '[build]\ntarget = "%s-unknown-linux-gnu"\n' "$machine" >.cargo/config.toml \
    && set -- libclang-dev \
    && if [ "$TARGETARCH" != "$(dpkg --print-architecture)" ]; then \
        set -- "$@" "$gcc" "libc6-dev-$TARGETARCH-cross" \
        && printf '[target.%s-unknown-linux-gnu]\nlinker = "%s-linux-gnu-gcc"\n' "$machine" "$machine" >>.cargo/config.toml \
        && printf '[env]\nBINDGEN_EXTRA_CLANG_ARGS = "-I/usr/%s-linux-gnu/include"\n' "$machine" >>.cargo/config.toml; \
    fi \
    && apt-get update \
    && apt-get install -y --no-install-recommends "$@" \
    && rm -rf /var/lib/apt/lists/* \
    && rustup target add "$machine-unknown-linux-gnu"
COPY Cargo.toml Cargo.lock ./
COPY core core
COPY src src
# Not built, but cargo wants to see what Cargo.toml names.
COPY benches benches
COPY demo demo
COPY fuzz fuzz
COPY tests/support tests/support
ARG RATELIMIT_BUILD=unknown
RUN RATELIMIT_BUILD="$RATELIMIT_BUILD" CARGO_PROFILE_RELEASE_STRIP=symbols cargo build --release --locked \
    && mv target/*-linux-gnu/release/libredis_ratelimit.so .

# No RUN below: it would need an emulator for an image of another architecture. Its platform is the default, but Buildah
# before 1.29 would take that of the stage above.
# hadolint ignore=DL3006,DL3029,DL3065
FROM --platform=$TARGETPLATFORM ${BASE}
COPY LICENSE-APACHE LICENSE-MIT /usr/share/doc/redis-ratelimit/
# Not where the images look for modules themselves (/usr/local/lib/redis/modules, /usr/lib/valkey): there it would be
# loaded twice, which no server survives, and plain Valkey looks nowhere.
COPY --from=build --chmod=755 /build/libredis_ratelimit.so /usr/lib/redis/modules/
COPY --chmod=755 tools/image-health /usr/local/bin/ratelimit-health
VOLUME /data
# The number of the user redis, or valkey, in the official images. Kubernetes' runAsNonRoot takes no name.
USER 999:999
# Loading gigabytes takes minutes; the first success ends the start period.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10m CMD ["ratelimit-health"]
# The entrypoint of either image puts its server's name before arguments that begin with a dash. Arguments given to
# `docker run` replace these: they name the module too, or a redis.conf that does.
CMD ["--loadmodule", "/usr/lib/redis/modules/libredis_ratelimit.so"]
