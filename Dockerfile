# Two images without a distribution, for a user who is not root:
#   docker build --target network-apiserver -t network-apiserver .
#   docker build --target etcd -t network-apiserver-etcd .
FROM golang:1.26 AS build
ENV CGO_ENABLED=0
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build BIN=/out
# The etcd that the server is built and tested with.
RUN cd hack/kube && go build -trimpath -o /out/etcd go.etcd.io/etcd/server/v3
# In an empty folder nobody but the user may write.
RUN install -d -o 65532 -g 65532 /empty

FROM scratch AS etcd
COPY --from=build --chown=65532:65532 /empty /var/lib/etcd
COPY --from=build /out/etcd /
USER 65532:65532
ENTRYPOINT ["/etcd"]

FROM scratch AS network-apiserver
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/network-apiserver /out/network-controller /out/neutron-simulator /
USER 65532:65532
ENTRYPOINT ["/network-apiserver"]
