package samplecrd

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NeutronFinalizer keeps a Network until its network is gone from Neutron. It
// is added in the same write that creates the object.
const NeutronFinalizer = "samplecrd.k8s.io/neutron"

// GatewayNone as a gateway means: the subnet has none.
const GatewayNone = "None"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Network is a network with its subnets in OpenStack Neutron.
type Network struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec   NetworkSpec
	Status NetworkStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NetworkList is a list of Networks.
type NetworkList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []Network
}

// NetworkSpec is what the user wants.
type NetworkSpec struct {
	Subnets          []Subnet
	MTU              *int32
	AdminState       AdminState
	ManagementPolicy ManagementPolicy
	DeletionPolicy   DeletionPolicy
	OpenStack        *OpenStack
}

// Subnet is one subnet. Its identity is its masked CIDR.
type Subnet struct {
	CIDR            string
	Gateway         string
	AllocationPools []AllocationPool
	DNSNameservers  []string
	HostRoutes      []HostRoute
	DHCP            Toggle
	IPv6            *IPv6
}

// AllocationPool is a range of addresses, both ends included.
type AllocationPool struct {
	Start string
	End   string
}

// HostRoute is a route handed to the hosts of a subnet.
type HostRoute struct {
	Destination string
	NextHop     string
}

// IPv6 tells how hosts get their IPv6 addresses.
type IPv6 struct {
	AddressMode IPv6Mode
	RAMode      IPv6Mode
}

// OpenStack holds what only OpenStack knows of.
type OpenStack struct {
	NetworkID      string
	CredentialsRef *CredentialsRef
	Provider       *Provider
	External       Toggle
	Shared         Toggle
	PortSecurity   Toggle
}

// CredentialsRef names a cloud in a Secret.
type CredentialsRef struct {
	SecretName string
	CloudName  string
}

// Provider maps the network to a physical one.
type Provider struct {
	NetworkType     string
	PhysicalNetwork string
	SegmentationID  *int32
}

// NetworkStatus is what was observed.
type NetworkStatus struct {
	ObservedGeneration int64
	Conditions         []metav1.Condition
	NetworkID          string
	ProjectID          string
	Region             string
	MTU                *int32
	Provider           *Provider
	Subnets            []SubnetStatus
	HeldSecrets        []string
}

// SubnetStatus is one subnet as Neutron has it.
type SubnetStatus struct {
	CIDR            string
	ID              string
	Gateway         string
	AllocationPools []AllocationPool
}

// Toggle is Enabled, Disabled, or empty: as Neutron chooses.
type Toggle string

// The values of a Toggle.
const (
	Enabled  Toggle = "Enabled"
	Disabled Toggle = "Disabled"
)

// AdminState tells whether the network forwards packets.
type AdminState string

// The values of AdminState.
const (
	AdminStateUp   AdminState = "Up"
	AdminStateDown AdminState = "Down"
)

// ManagementPolicy tells whether the controller may write to Neutron.
type ManagementPolicy string

// The values of ManagementPolicy.
const (
	ManagementPolicyManaged ManagementPolicy = "Managed"
	ManagementPolicyObserve ManagementPolicy = "Observe"
)

// DeletionPolicy tells what becomes of the network when the object goes.
type DeletionPolicy string

// The values of DeletionPolicy.
const (
	DeletionPolicyDelete DeletionPolicy = "Delete"
	DeletionPolicyRetain DeletionPolicy = "Retain"
)

// IPv6Mode is a way to hand out IPv6 addresses.
type IPv6Mode string

// The values of IPv6Mode.
const (
	IPv6SLAAC           IPv6Mode = "SLAAC"
	IPv6DHCPv6Stateful  IPv6Mode = "DHCPv6Stateful"
	IPv6DHCPv6Stateless IPv6Mode = "DHCPv6Stateless"
)
