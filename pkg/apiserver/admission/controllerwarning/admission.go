// Package controllerwarning is the admission plugin ControllerWarning: who
// deletes a Network while no controller runs is told that it will stay.
package controllerwarning

import (
	"context"
	"errors"
	"io"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	networkadmission "github.com/samplecrd/network-apiserver/pkg/apiserver/admission"
)

// PluginName is the plugin's name in flags and in the admission configuration.
const PluginName = "ControllerWarning"

const text = "no controller is running: the object stays until one does, and with it what it has in Neutron"

// Register makes the plugin known. It takes no configuration.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(config io.Reader) (admission.Interface, error) {
		if config != nil {
			return nil, errors.New("it takes no configuration")
		}
		return &plugin{Handler: admission.NewHandler(admission.Delete)}, nil
	})
}

type plugin struct {
	*admission.Handler
	running func() bool
}

var (
	_ admission.ValidationInterface           = &plugin{}
	_ networkadmission.WantsControllerRunning = &plugin{}
)

// SetControllerRunning takes what tells whether a controller runs.
func (p *plugin) SetControllerRunning(running func() bool) { p.running = running }

// ValidateInitialization refuses to start without that.
func (p *plugin) ValidateInitialization() error {
	if p.running == nil {
		return errors.New("it needs to know whether a controller runs")
	}
	return nil
}

// Validate refuses nothing.
func (p *plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() == samplecrd.Resource("networks") && a.GetSubresource() == "" && !p.running() {
		warning.AddWarning(ctx, "", text)
	}
	return nil
}
