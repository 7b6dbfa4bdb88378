// +k8s:deepcopy-gen=package
// +groupName=samplecrd.k8s.io

// Package samplecrd holds the hub types of the group samplecrd.k8s.io: the
// union of the fields of all its versions, which the course calls the "super
// version". Defaulting happens in the versions; validation, strategy and
// admission see only these types.
package samplecrd
