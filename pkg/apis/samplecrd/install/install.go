// Package install adds all versions of the group samplecrd.k8s.io to a scheme.
package install

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
)

// Install adds the hub and every version; v1 is preferred.
func Install(scheme *runtime.Scheme) {
	utilruntime.Must(samplecrd.AddToScheme(scheme))
	utilruntime.Must(samplecrdv1.Install(scheme))
	utilruntime.Must(samplecrdv2alpha1.Install(scheme))
	utilruntime.Must(scheme.SetVersionPriority(samplecrdv1.SchemeGroupVersion, samplecrdv2alpha1.SchemeGroupVersion))
}
