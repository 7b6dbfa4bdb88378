// +k8s:deepcopy-gen=package
// +k8s:protobuf-gen=package
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.k8s.samplecrd.pipeline.v1alpha1
// +groupName=pipeline.samplecrd.k8s.io

// Package v1alpha1 tells what happened to requests for Networks on their way
// through the server, and to Networks in the controller afterwards. Nothing of
// it is stored: a server holds its last requests in memory.
package v1alpha1
