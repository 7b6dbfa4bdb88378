package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GatewayNone as a gateway means: the subnet has none.
const GatewayNone = "None"

// NeutronFinalizer keeps a Network until its network is gone from Neutron.
const NeutronFinalizer = "samplecrd.k8s.io/neutron"

// CredentialsFinalizer keeps a Secret while Networks are made with it, and the
// RoleBinding by which the controller may let it go.
const CredentialsFinalizer = "samplecrd.k8s.io/credentials" //nolint:gosec // it is a name

// Condition types of a Network.
const (
	// Ready: the network is there as declared, or still serves while a change is made.
	ConditionReady = "Ready"
	// Progressing: the controller will act again by itself. False with a
	// current observedGeneration means: stop waiting.
	ConditionProgressing = "Progressing"
)

// Reasons of the conditions of a Network.
const (
	ReasonSuccess                = "Success"
	ReasonCreating               = "Creating"
	ReasonUpdating               = "Updating"
	ReasonDeleting               = "Deleting"
	ReasonExternallyDeleted      = "ExternallyDeleted"
	ReasonTransientError         = "TransientError"
	ReasonQuotaExceeded          = "QuotaExceeded"
	ReasonConflict               = "Conflict"
	ReasonInUse                  = "InUse"
	ReasonCredentialsUnavailable = "CredentialsUnavailable"
	ReasonInvalidConfiguration   = "InvalidConfiguration"
	ReasonForbidden              = "Forbidden"
	ReasonNotOwned               = "NotOwned"
	ReasonNotFound               = "NotFound"
	ReasonPaused                 = "Paused"
	ReasonDriftDetected          = "DriftDetected"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Network is a network with its subnets in OpenStack Neutron. Two fields
// suffice: spec.cidr, and spec.gateway if it is to be a certain one.
type Network struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object's metadata.
	// More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// spec is what the network shall be.
	// +optional
	Spec NetworkSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`

	// status is what was observed in Neutron. It is written by the controller.
	// +optional
	Status NetworkStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NetworkList is a list of Networks.
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// items are the Networks.
	// +required
	Items []Network `json:"items" protobuf:"bytes,2,rep,name=items"`
}

// NetworkSpec is what the network shall be.
type NetworkSpec struct {
	// The first subnet stands flat in the spec.
	Subnet `json:",inline" protobuf:"bytes,1,opt,name=subnet"`

	// additionalSubnets are further subnets of the network, up to 15: an IPv6
	// subnet beside an IPv4 one, for example. Subnets of one Network must not overlap.
	// +optional
	// +listType=atomic
	AdditionalSubnets []Subnet `json:"additionalSubnets,omitempty" protobuf:"bytes,2,rep,name=additionalSubnets"`

	// mtu is the largest packet in bytes, 68 to 9216, at least 1280 with IPv6.
	// Absent: what Neutron chooses.
	// +optional
	MTU *int32 `json:"mtu,omitempty" protobuf:"varint,3,opt,name=mtu"`

	// adminState is Up (the default) or Down: a network that is Down forwards no packets.
	// +optional
	AdminState AdminState `json:"adminState,omitempty" protobuf:"bytes,4,opt,name=adminState,casttype=AdminState"`

	// managementPolicy is Managed (the default): the controller makes the
	// network and keeps it as declared; or Observe: it only reads the existing
	// network named by openStack.networkID and never writes to Neutron.
	// +optional
	ManagementPolicy ManagementPolicy `json:"managementPolicy,omitempty" protobuf:"bytes,5,opt,name=managementPolicy,casttype=ManagementPolicy"`

	// deletionPolicy tells what becomes of the network in Neutron when this
	// object is deleted: Delete it, or Retain it. Default: Delete; Retain where
	// openStack.networkID is set.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty" protobuf:"bytes,6,opt,name=deletionPolicy,casttype=DeletionPolicy"`

	// openStack holds what only OpenStack knows of.
	// +optional
	OpenStack *OpenStack `json:"openStack,omitempty" protobuf:"bytes,7,opt,name=openStack"`
}

// Subnet is one subnet of a network. Its identity is its CIDR with the host
// bits masked: a change of anything else changes the subnet in place, a change
// of the CIDR replaces it.
type Subnet struct {
	// cidr is the address range, such as 192.168.0.0/16 or fd00::/64. Host bits
	// are allowed and ignored: 192.168.1.0/16 is 192.168.0.0/16. Needed unless
	// openStack.networkID is set.
	// +optional
	CIDR string `json:"cidr,omitempty" protobuf:"bytes,1,opt,name=cidr"`

	// gateway is the address of the gateway, or None for a subnet without one.
	// Absent: the address that Neutron chooses, for IPv4 the first one. The one
	// in force is in status.subnets.
	// +optional
	Gateway string `json:"gateway,omitempty" protobuf:"bytes,2,opt,name=gateway"`

	// allocationPools are the ranges from which addresses are handed out, at
	// most 32. Absent: all of the subnet but the gateway.
	// +optional
	// +listType=atomic
	AllocationPools []AllocationPool `json:"allocationPools,omitempty" protobuf:"bytes,3,rep,name=allocationPools"`

	// dnsNameservers are the addresses of name servers handed to hosts, in
	// order, at most 5.
	// +optional
	// +listType=atomic
	DNSNameservers []string `json:"dnsNameservers,omitempty" protobuf:"bytes,4,rep,name=dnsNameservers"`

	// hostRoutes are routes handed to hosts, at most 20.
	// +optional
	// +listType=atomic
	HostRoutes []HostRoute `json:"hostRoutes,omitempty" protobuf:"bytes,5,rep,name=hostRoutes"`

	// dhcp is Enabled (the default) or Disabled.
	// +optional
	DHCP Toggle `json:"dhcp,omitempty" protobuf:"bytes,6,opt,name=dhcp,casttype=Toggle"`

	// ipv6 tells how hosts of an IPv6 subnet get their addresses. It can't be
	// changed while the subnet is kept.
	// +optional
	IPv6 *IPv6 `json:"ipv6,omitempty" protobuf:"bytes,7,opt,name=ipv6"`
}

// AllocationPool is a range of addresses, both ends included.
type AllocationPool struct {
	// start is the first address of the range.
	// +required
	Start string `json:"start" protobuf:"bytes,1,opt,name=start"`

	// end is the last address of the range.
	// +required
	End string `json:"end" protobuf:"bytes,2,opt,name=end"`
}

// HostRoute is a route handed to the hosts of a subnet.
type HostRoute struct {
	// destination is the range that the route leads to, such as 10.5.0.0/16.
	// +required
	Destination string `json:"destination" protobuf:"bytes,1,opt,name=destination"`

	// nextHop is the address that packets are sent to.
	// +required
	NextHop string `json:"nextHop" protobuf:"bytes,2,opt,name=nextHop"`
}

// IPv6 tells how hosts of an IPv6 subnet get their addresses. If both modes
// are set they must be equal; SLAAC and DHCPv6Stateless need a /64.
type IPv6 struct {
	// addressMode is how addresses are given: SLAAC, DHCPv6Stateful or DHCPv6Stateless.
	// +optional
	AddressMode IPv6Mode `json:"addressMode,omitempty" protobuf:"bytes,1,opt,name=addressMode,casttype=IPv6Mode"`

	// raMode is what router advertisements say: SLAAC, DHCPv6Stateful or DHCPv6Stateless.
	// +optional
	RAMode IPv6Mode `json:"raMode,omitempty" protobuf:"bytes,2,opt,name=raMode,casttype=IPv6Mode"`
}

// OpenStack holds what only OpenStack knows of.
type OpenStack struct {
	// networkID takes over the existing Neutron network of this id. It can't be changed.
	// +optional
	NetworkID string `json:"networkID,omitempty" protobuf:"bytes,1,opt,name=networkID"`

	// credentialsRef names the cloud this network is made in. Absent: the cloud
	// of the server.
	// +optional
	CredentialsRef *CredentialsRef `json:"credentialsRef,omitempty" protobuf:"bytes,2,opt,name=credentialsRef"`

	// provider maps the network to a physical one. It can't be changed.
	// +optional
	Provider *Provider `json:"provider,omitempty" protobuf:"bytes,3,opt,name=provider"`

	// external is Enabled where routers may use the network as their gateway.
	// Absent: as Neutron chooses.
	// +optional
	External Toggle `json:"external,omitempty" protobuf:"bytes,4,opt,name=external,casttype=Toggle"`

	// shared is Enabled where all projects may use the network. Absent: as
	// Neutron chooses.
	// +optional
	Shared Toggle `json:"shared,omitempty" protobuf:"bytes,5,opt,name=shared,casttype=Toggle"`

	// portSecurity is Disabled where ports of the network take any packet.
	// Absent: as Neutron chooses.
	// +optional
	PortSecurity Toggle `json:"portSecurity,omitempty" protobuf:"bytes,6,opt,name=portSecurity,casttype=Toggle"`
}

// CredentialsRef names a cloud in a Secret beside the object.
type CredentialsRef struct {
	// secretName is the name of a Secret in the same namespace that holds a clouds.yaml.
	// +required
	SecretName string `json:"secretName" protobuf:"bytes,1,opt,name=secretName"`

	// cloudName is the cloud in that clouds.yaml.
	// +required
	CloudName string `json:"cloudName" protobuf:"bytes,2,opt,name=cloudName"`
}

// Provider maps a network to a physical one.
type Provider struct {
	// networkType is Neutron's own word: flat, vlan, vxlan, geneve, gre or local.
	// +optional
	NetworkType string `json:"networkType,omitempty" protobuf:"bytes,1,opt,name=networkType"`

	// physicalNetwork is the name that the operator gave the physical network.
	// +optional
	PhysicalNetwork string `json:"physicalNetwork,omitempty" protobuf:"bytes,2,opt,name=physicalNetwork"`

	// segmentationID is the id of the segment, 1 to 4094 for vlan. It needs networkType.
	// +optional
	SegmentationID *int32 `json:"segmentationID,omitempty" protobuf:"varint,3,opt,name=segmentationID"`
}

// NetworkStatus is what was observed in Neutron.
type NetworkStatus struct {
	// observedGeneration is the metadata.generation that this status tells of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,1,opt,name=observedGeneration"`

	// conditions are Ready and Progressing. Progressing=False with the current
	// observedGeneration means: it is done, or waits for a person.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,2,rep,name=conditions"`

	// networkID is the id of the network in Neutron.
	// +optional
	NetworkID string `json:"networkID,omitempty" protobuf:"bytes,3,opt,name=networkID"`

	// projectID is the OpenStack project the network is in.
	// +optional
	ProjectID string `json:"projectID,omitempty" protobuf:"bytes,4,opt,name=projectID"`

	// region is the OpenStack region the network is in.
	// +optional
	Region string `json:"region,omitempty" protobuf:"bytes,5,opt,name=region"`

	// mtu is the largest packet in bytes.
	// +optional
	MTU *int32 `json:"mtu,omitempty" protobuf:"varint,6,opt,name=mtu"`

	// provider is the physical network, where the credentials allow to see it.
	// +optional
	Provider *Provider `json:"provider,omitempty" protobuf:"bytes,7,opt,name=provider"`

	// subnets are the subnets of the network: those of the spec in its order,
	// then any others.
	// +optional
	// +listType=atomic
	Subnets []SubnetStatus `json:"subnets,omitempty" protobuf:"bytes,8,rep,name=subnets"`

	// heldSecrets are the Secrets in the namespace that are kept for this
	// network: each bears a finalizer until the network is gone or refers
	// elsewhere.
	// +optional
	// +listType=atomic
	HeldSecrets []string `json:"heldSecrets,omitempty" protobuf:"bytes,9,rep,name=heldSecrets"`
}

// SubnetStatus is one subnet as Neutron has it.
type SubnetStatus struct {
	// cidr is the address range, host bits masked.
	// +required
	CIDR string `json:"cidr" protobuf:"bytes,1,opt,name=cidr"`

	// id is the id of the subnet in Neutron.
	// +required
	ID string `json:"id" protobuf:"bytes,2,opt,name=id"`

	// gateway is the gateway in force. Absent: none.
	// +optional
	Gateway string `json:"gateway,omitempty" protobuf:"bytes,3,opt,name=gateway"`

	// allocationPools are the ranges from which addresses are handed out.
	// +optional
	// +listType=atomic
	AllocationPools []AllocationPool `json:"allocationPools,omitempty" protobuf:"bytes,4,rep,name=allocationPools"`
}

// Toggle is Enabled or Disabled.
// +enum
type Toggle string

// The values of a Toggle.
const (
	Enabled  Toggle = "Enabled"
	Disabled Toggle = "Disabled"
)

// AdminState is Up or Down.
// +enum
type AdminState string

// The values of AdminState.
const (
	AdminStateUp   AdminState = "Up"
	AdminStateDown AdminState = "Down"
)

// ManagementPolicy is Managed or Observe.
// +enum
type ManagementPolicy string

// The values of ManagementPolicy.
const (
	// ManagementPolicyManaged: the controller makes the network and keeps it as declared.
	ManagementPolicyManaged ManagementPolicy = "Managed"
	// ManagementPolicyObserve: the controller only reads.
	ManagementPolicyObserve ManagementPolicy = "Observe"
)

// DeletionPolicy is Delete or Retain.
// +enum
type DeletionPolicy string

// The values of DeletionPolicy.
const (
	// DeletionPolicyDelete: the network goes with the object.
	DeletionPolicyDelete DeletionPolicy = "Delete"
	// DeletionPolicyRetain: the network stays and loses the owner's marker.
	DeletionPolicyRetain DeletionPolicy = "Retain"
)

// IPv6Mode is a way to hand out IPv6 addresses (RFC 4862, RFC 8415).
// +enum
type IPv6Mode string

// The values of IPv6Mode.
const (
	IPv6SLAAC           IPv6Mode = "SLAAC"
	IPv6DHCPv6Stateful  IPv6Mode = "DHCPv6Stateful"
	IPv6DHCPv6Stateless IPv6Mode = "DHCPv6Stateless"
)
