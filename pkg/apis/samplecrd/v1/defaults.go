package v1

func init() {
	localSchemeBuilder.Register(RegisterDefaults)
}

// SetDefaults_NetworkSpec sets what is safe to assume. Of a network that is
// taken over (openStack.networkID) nothing is assumed but that it stays: what
// was not made here is not changed or deleted unasked.
//
//nolint:revive // the name is what defaulter-gen looks for
func SetDefaults_NetworkSpec(spec *NetworkSpec) {
	if spec.ManagementPolicy == "" {
		spec.ManagementPolicy = ManagementPolicyManaged
	}
	if spec.OpenStack != nil && spec.OpenStack.NetworkID != "" {
		if spec.DeletionPolicy == "" {
			spec.DeletionPolicy = DeletionPolicyRetain
		}
		return
	}
	if spec.DeletionPolicy == "" {
		spec.DeletionPolicy = DeletionPolicyDelete
	}
	if spec.AdminState == "" {
		spec.AdminState = AdminStateUp
	}
	setSubnetDefaults(&spec.Subnet)
	for i := range spec.AdditionalSubnets {
		setSubnetDefaults(&spec.AdditionalSubnets[i])
	}
}

// setSubnetDefaults leaves a subnet without CIDR alone: the flat subnet of a
// spec that has none must stay empty.
func setSubnetDefaults(subnet *Subnet) {
	if subnet.CIDR != "" && subnet.DHCP == "" {
		subnet.DHCP = Enabled
	}
}
