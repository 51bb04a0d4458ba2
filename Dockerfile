# The official image of Redis or Valkey with the module in it, and otherwise as it was:
#
#   docker build -t redis-ratelimit .
#   docker build -t valkey-ratelimit --build-arg BASE=valkey/valkey:9.0 .
#   docker run --rm -p 6379:6379 redis-ratelimit
#
# BASE is any image of Debian 12 or later (not Alpine, whose C library is another one) with a server of 7.0 or later.

ARG BASE=redis:8

# As old as the oldest base: what is built against a newer glibc than the server's would not load.
FROM rust:1-bookworm AS build
# bindgen reads Redis' header with libclang.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libclang-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
COPY core core
COPY src src
# Not built, but cargo wants to see what Cargo.toml names.
COPY benches benches
COPY demo demo
COPY fuzz fuzz
ARG RATELIMIT_BUILD=unknown
RUN RATELIMIT_BUILD="$RATELIMIT_BUILD" CARGO_PROFILE_RELEASE_STRIP=symbols cargo build --release --locked

# hadolint ignore=DL3006
FROM ${BASE}
COPY LICENSE-APACHE LICENSE-MIT /usr/share/doc/redis-ratelimit/
# Not where the images look for modules themselves (/usr/local/lib/redis/modules, /usr/lib/valkey): there it would be
# loaded twice, which no server survives, and plain Valkey looks nowhere.
COPY --from=build --chmod=755 /build/target/release/libredis_ratelimit.so /usr/lib/redis/modules/
# The entrypoint of either image puts its server's name before arguments that begin with a dash. Whoever gives arguments
# of their own gives this one too, or has it in their redis.conf.
CMD ["--loadmodule", "/usr/lib/redis/modules/libredis_ratelimit.so"]
