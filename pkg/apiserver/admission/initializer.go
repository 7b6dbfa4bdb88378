// Package admission hands the admission plugins of this server what they need,
// and checks the file that configures them.
package admission

import (
	"k8s.io/apiserver/pkg/admission"

	informers "github.com/samplecrd/network-apiserver/pkg/generated/informers/externalversions"
)

// WantsNetworkInformerFactory is implemented by plugins that look at other Networks.
type WantsNetworkInformerFactory interface {
	SetNetworkInformerFactory(informers.SharedInformerFactory)
	admission.InitializationValidator
}

// WantsControllerRunning is implemented by plugins that ask whether a controller
// runs, anywhere.
type WantsControllerRunning interface {
	SetControllerRunning(func() bool)
	admission.InitializationValidator
}

type initializer struct {
	factory informers.SharedInformerFactory
	running func() bool
}

// NewInitializer returns an initializer that hands to each plugin what it wants;
// nil is handed to nobody. Plugins ask factory for informers while they are
// initialized: start it after that.
func NewInitializer(factory informers.SharedInformerFactory, running func() bool) admission.PluginInitializer {
	return initializer{factory: factory, running: running}
}

func (i initializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(WantsNetworkInformerFactory); ok && i.factory != nil {
		wants.SetNetworkInformerFactory(i.factory)
	}
	if wants, ok := plugin.(WantsControllerRunning); ok && i.running != nil {
		wants.SetControllerRunning(i.running)
	}
}
