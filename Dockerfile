# The program `rushes` in a small image: docker build -t rushes . && docker run --rm rushes loopback
# Streams need the host's ports: docker run --rm --network host rushes recv --from 5004 ...
FROM rust:1-slim-bookworm AS build
WORKDIR /rushes
COPY . .
RUN cargo build --release --locked -p rushes-cli --features bench
RUN install -D target/release/rushes /image/usr/bin/rushes && install -D LICENSE /image/usr/share/doc/rushes/copyright

FROM debian:bookworm-slim
COPY --from=build /image /
USER 65534:65534
WORKDIR /media
ENTRYPOINT ["rushes"]
CMD ["--help"]
