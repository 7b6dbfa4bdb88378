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

type initializer struct {
	factory informers.SharedInformerFactory
}

// NewInitializer returns an initializer that hands factory to each plugin that
// wants it. Plugins ask it for informers while they are initialized: start it
// after that.
func NewInitializer(factory informers.SharedInformerFactory) admission.PluginInitializer {
	return initializer{factory: factory}
}

func (i initializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(WantsNetworkInformerFactory); ok {
		wants.SetNetworkInformerFactory(i.factory)
	}
}
