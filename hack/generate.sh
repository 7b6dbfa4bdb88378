#!/usr/bin/env bash
# Makes everything that is generated from the types. Needs protoc on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."

module=$(go list -m)
apis=$module/pkg/apis/samplecrd
v1=$apis/v1
v2=$apis/v2alpha1
pipeline=$module/pkg/apis/pipeline/v1alpha1
generated=$module/pkg/generated
header=$PWD/hack/boilerplate.go.txt

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
GOBIN= go build -o "$work/bin/" tool
export PATH=$work/bin:$PATH

echo "register, deepcopy"
register-gen --go-header-file "$header" --output-file zz_generated.register.go "$v1" "$v2" "$pipeline"
deepcopy-gen --go-header-file "$header" --output-file zz_generated.deepcopy.go "$apis" "$v1" "$v2" "$pipeline"

echo "protobuf"
# go-to-protobuf finds packages by import path below a folder, and the .proto
# files of apimachinery and gogo below another; gogo has those of Google, which
# not every protoc brings along.
mkdir -p "$work/src/$(dirname "$module")" "$work/proto/k8s.io" "$work/proto/github.com/gogo"
ln -s "$PWD" "$work/src/$module"
ln -s "$(go list -m -f '{{.Dir}}' k8s.io/apimachinery)" "$work/proto/k8s.io/apimachinery"
ln -s "$(go mod download -json github.com/gogo/protobuf@v1.3.2 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" "$work/proto/github.com/gogo/protobuf"
machinery=$(printf -- ',-k8s.io/apimachinery/pkg/%s' util/intstr api/resource runtime/schema runtime apis/meta/v1)
go-to-protobuf --go-header-file "$header" --output-dir "$work/src" --proto-import "$work/proto" --proto-import "$work/proto/github.com/gogo/protobuf/protobuf" \
	--packages "$v1,$v2,$pipeline" --apimachinery-packages "${machinery#,}"

echo "defaults, conversion, openapi"
defaulter-gen --go-header-file "$header" --output-file zz_generated.defaults.go "$v1" "$v2"
conversion-gen --go-header-file "$header" --output-file zz_generated.conversion.go "$v1" "$v2"
mkdir -p pkg/generated/openapi
readonly_packages=()
for p in apis/meta/v1 runtime version; do
	readonly_packages+=(--readonly-pkg "k8s.io/apimachinery/pkg/$p")
done
openapi-gen --go-header-file "$header" --output-dir pkg/generated/openapi --output-pkg "$generated/openapi" \
	--output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
	--report-filename /dev/null "${readonly_packages[@]}" \
	k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version "$v1" "$v2" "$pipeline"

echo "client"
rm -rf pkg/generated/{applyconfiguration,clientset,listers,informers}
applyconfiguration-gen --go-header-file "$header" --output-dir pkg/generated/applyconfiguration \
	--output-pkg "$generated/applyconfiguration" "$v1" "$v2"
client-gen --go-header-file "$header" --clientset-name versioned --input-base '' --input "$v1,$v2,$pipeline" \
	--output-dir pkg/generated/clientset --output-pkg "$generated/clientset" \
	--apply-configuration-package "$generated/applyconfiguration" --prefers-protobuf
lister-gen --go-header-file "$header" --output-dir pkg/generated/listers --output-pkg "$generated/listers" "$v1" "$v2"
informer-gen --go-header-file "$header" --output-dir pkg/generated/informers --output-pkg "$generated/informers" \
	--versioned-clientset-package "$generated/clientset/versioned" --listers-package "$generated/listers" "$v1" "$v2"
