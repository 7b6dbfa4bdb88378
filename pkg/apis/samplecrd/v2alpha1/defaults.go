package v2alpha1

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
	for i := range spec.Subnets {
		setSubnetDefaults(&spec.Subnets[i])
	}
}

// setSubnetDefaults leaves a subnet without CIDR alone, as v1 does: it is
// refused anyway, and the user reads back what was written.
func setSubnetDefaults(subnet *Subnet) {
	if subnet.CIDR != "" && subnet.DHCP == "" {
		subnet.DHCP = Enabled
	}
}
