// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/samplecrd/network-apiserver/pkg/apis/samplecrd
// +k8s:defaulter-gen=TypeMeta
// +k8s:protobuf-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.k8s.samplecrd.v2alpha1
// +groupName=samplecrd.k8s.io

// Package v2alpha1 is the version of samplecrd.k8s.io in which all subnets
// stand in one list, as they do in the hub.
package v2alpha1
