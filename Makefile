# The two commands of the README are run and test; CONTRIBUTING.md tells the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := build

KUBE_VERSION := v1.37.2
GOLANGCI_LINT_VERSION := v2.15.0
DATA_DIR ?= .data
KUBE_DIR ?= .kube
SECURE_PORT ?= 0
# Where test binaries and tools go.
BIN := bin

# kubectl and clients judge a server by the version of the API machinery; the
# build of ours follows the plus sign.
BUILD := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
version := k8s.io/component-base/version
LDFLAGS := -X $(version).gitVersion=$(KUBE_VERSION)+network-apiserver.$(BUILD) \
	-X $(version).gitCommit=$(shell git rev-parse HEAD 2>/dev/null || echo unknown) \
	-X $(version).gitMajor=1 -X $(version).gitMinor=37

.PHONY: build
build: ## Build all programs into bin/.
	go build -ldflags "$(LDFLAGS)" -o $(BIN)/ ./cmd/...

.PHONY: run
run: build ## Build and start everything in one process, state in DATA_DIR, with FLAGS.
	exec $(BIN)/network-apiserver --standalone --data-dir $(DATA_DIR) --secure-port $(SECURE_PORT) $(FLAGS)

# Kubernetes as it is released; hack/kube/go.mod pins it.
KUBE_LDFLAGS := -X $(version).gitVersion=$(KUBE_VERSION) -X $(version).gitMajor=1 -X $(version).gitMinor=37

.PHONY: kubectl
kubectl: $(BIN)/kubectl ## Build a kubectl into bin/.

.PHONY: kube-build
kube-build: $(addprefix $(BIN)/,kube etcd kube-apiserver kube-controller-manager kubectl) ## Build a control plane into bin/ (11 minutes the first time).

$(BIN)/kube-apiserver $(BIN)/kube-controller-manager $(BIN)/kubectl: hack/kube/go.mod hack/kube/go.sum
	cd hack/kube && go build -ldflags "$(KUBE_LDFLAGS)" -o $(CURDIR)/$@ k8s.io/kubernetes/cmd/$(@F)

$(BIN)/etcd: hack/kube/go.mod hack/kube/go.sum
	cd hack/kube && go build -o $(CURDIR)/$@ go.etcd.io/etcd/server/v3

$(BIN)/kube: $(wildcard hack/kube/*.go) hack/kube/go.mod hack/kube/go.sum
	cd hack/kube && go build -o $(CURDIR)/$@ .

.PHONY: kube
kube: kube-build build ## Start a Kubernetes control plane with the server registered, state in KUBE_DIR.
	exec $(BIN)/kube -bin $(BIN) -data $(KUBE_DIR) -- hack/kube/register.sh

.PHONY: test
test: ## Run all tests with the race detector.
	go test -race -timeout 10m ./...

.PHONY: e2e-neutron
e2e-neutron: ## Run contract suite and server against a real Neutron (Debian, as root; 9 minutes).
	hack/neutron/e2e.sh

.PHONY: test-kube
test-kube: kube-build ## Test that control plane itself (2 minutes).
	cd hack/kube && go test -race -count=1 -timeout 20m .

.PHONY: e2e
e2e: kube-build build ## Drive the server behind a real kube-apiserver (9 minutes).
	go test -race -count=1 -timeout 25m -tags kube -run '^TestKube' ./test/e2e

.PHONY: freeze-full
freeze-full: export FREEZE_FULL = 1
freeze-full: kube-build build ## Freeze the leader, and see what was too much removed (12 minutes).
	go test -race -count=1 -timeout 25m -tags kube -v -run '^TestKube$$/^FrozenLeader$$' ./test/e2e

.PHONY: browser
browser: build kubectl ## Test the pipeline page in a real browser (3 minutes).
	go test -race -count=1 -timeout 10m -parallel 4 -tags browser ./test/browser

.PHONY: bench
bench: ## Compare the controller with a plain loop, and measure resync and lists.
	go test -run '^$$' -bench . -timeout 20m ./pkg/controller/network ./test/integration

.PHONY: chaos chaos-full
chaos: ## Kill the server under load while everything goes wrong: 100 Networks, 10 kills (3 minutes).
	go test -race -count=1 -timeout 15m -tags chaos -run '^TestChaos' ./test/e2e
chaos-full: export CHAOS_NETWORKS = 500
chaos-full: export CHAOS_KILLS = 50
chaos-full: ## The same with 500 Networks and 50 kills (CHAOS_SEED=N repeats one).
	go test -race -count=1 -timeout 60m -tags chaos -v -run '^TestChaos$$' ./test/e2e

.PHONY: generate
generate: ## Make what is generated from the types (needs protoc).
	hack/generate.sh

.PHONY: verify
verify: verify-tidy verify-generate lint ## Prove that the checkout is tidy, current and clean.

.PHONY: verify-generate
verify-generate: generate
	@changed=$$(git status --porcelain -- pkg/apis pkg/generated); \
	if [ -n "$$changed" ]; then echo "not current, run make generate and commit:"; echo "$$changed"; exit 1; fi

.PHONY: verify-tidy
verify-tidy:
	go mod tidy -diff
	cd hack/kube && go mod tidy -diff
	@unformatted=$$(gofmt -l cmd hack pkg test); \
	if [ -n "$$unformatted" ]; then echo "gofmt would change:"; echo "$$unformatted"; exit 1; fi

.PHONY: lint
lint: $(BIN)/golangci-lint ## Run the linters.
	$(BIN)/golangci-lint run ./...

$(BIN)/golangci-lint: Makefile
	GOBIN=$(CURDIR)/$(BIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

.PHONY: fuzz
FUZZ_TIME ?= 30s
fuzz: ## Run each fuzz target for FUZZ_TIME.
	@set -e; for package in $$(grep -rl '^func Fuzz' --include=*_test.go pkg | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -rhoE '^func Fuzz[A-Za-z]+' $$package | sed 's/func //'); do \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZ_TIME) ./$$package; \
		done; \
	done

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z0-9-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: clean
clean: ## Remove what was built.
	rm -rf $(BIN)
