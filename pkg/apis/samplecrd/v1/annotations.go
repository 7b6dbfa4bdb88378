package v1

// Annotations by which a person steers the controller, on a Network. A change
// of any annotation makes it look at the Network at once.
const (
	// AnnotationPause set to "true": the controller reads, and writes nothing
	// to Neutron. Not even a deletion goes on.
	AnnotationPause = "samplecrd.k8s.io/pause"

	// AnnotationReconcileNow has no meaning but that its change starts a look:
	// kubectl annotate --overwrite network NAME samplecrd.k8s.io/reconcile-now="$(date)".
	AnnotationReconcileNow = "samplecrd.k8s.io/reconcile-now"

	// AnnotationAbandon set to "true" lets a Network that is being deleted go
	// at once, without a word to Neutron: what is there stays as it is, marker
	// included. For a network that can't be reached, or is not ours any more.
	AnnotationAbandon = "samplecrd.k8s.io/abandon"

	// AnnotationTakeOverFrom names the owner marker of another Network, from
	// which openStack.networkID may take the network over: the way home after
	// Networks were made anew from a backup.
	AnnotationTakeOverFrom = "samplecrd.k8s.io/take-over-from"
)

// AnnotationNetwork on a Deployment asks for a Network of its name, which goes
// with it: "true" has the CIDR chosen, or a CIDR names it. To have no Network,
// leave it out.
const AnnotationNetwork = "samplecrd.k8s.io/network"
