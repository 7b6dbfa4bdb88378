// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/samplecrd/network-apiserver/pkg/apis/samplecrd
// +k8s:defaulter-gen=TypeMeta
// +k8s:protobuf-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.k8s.samplecrd.v1
// +groupName=samplecrd.k8s.io

// Package v1 is the preferred and stored version of samplecrd.k8s.io. The
// first subnet stands flat in the spec, so that a user writes two fields:
// cidr and gateway.
package v1
