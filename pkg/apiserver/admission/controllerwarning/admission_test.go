package controllerwarning_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	networkadmission "github.com/samplecrd/network-apiserver/pkg/apiserver/admission"
	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission/controllerwarning"
)

// recorder takes warnings.
type recorder []string

func (r *recorder) AddWarning(_, text string) { *r = append(*r, text) }

func TestValidate(t *testing.T) {
	networks := samplecrdv1.SchemeGroupVersion.WithResource("networks")
	for name, tc := range map[string]struct {
		running     bool
		resource    schema.GroupVersionResource
		subresource string
		want        recorder
	}{
		"a deletion that nobody would carry out": {
			resource: networks,
			want:     recorder{"no controller is running: the object stays until one does, and with it what it has in Neutron"},
		},
		"a deletion while a controller runs": {running: true, resource: networks},
		"a deletion of something else":       {resource: samplecrdv1.SchemeGroupVersion.WithResource("others")},
		"a subresource":                      {resource: networks, subresource: "status"},
	} {
		t.Run(name, func(t *testing.T) {
			plugins := admission.NewPlugins()
			controllerwarning.Register(plugins)
			plugin, err := plugins.InitPlugin(controllerwarning.PluginName, nil,
				networkadmission.NewInitializer(nil, func() bool { return tc.running }))
			if err != nil {
				t.Fatal(err)
			}
			if plugin.Handles(admission.Create) || plugin.Handles(admission.Update) || !plugin.Handles(admission.Delete) {
				t.Error("it is not about deletions alone")
			}
			var got recorder
			err = plugin.(admission.ValidationInterface).Validate(warning.WithWarningRecorder(t.Context(), &got),
				admission.NewAttributesRecord(nil, nil, samplecrdv1.SchemeGroupVersion.WithKind("Network"), "team", "web",
					tc.resource, tc.subresource, admission.Delete, nil, false, nil), nil)
			if err != nil {
				t.Errorf("it was refused: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatStopsTheStart(t *testing.T) {
	plugins := admission.NewPlugins()
	controllerwarning.Register(plugins)
	if _, err := plugins.InitPlugin(controllerwarning.PluginName, strings.NewReader("{}"), networkadmission.NewInitializer(nil, nil)); err == nil {
		t.Error("a configuration was taken, of which there is none")
	}
	if _, err := plugins.InitPlugin(controllerwarning.PluginName, nil, networkadmission.NewInitializer(nil, nil)); err == nil {
		t.Error("it starts without knowing whether a controller runs")
	}
}
