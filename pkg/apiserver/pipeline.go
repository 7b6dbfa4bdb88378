package apiserver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
	"github.com/samplecrd/network-apiserver/pkg/registry/requesttrace"
)

// installPipeline serves what the recorder has, if there is one and its version
// is enabled. The group has no hub: nothing of it is stored.
func (c CompletedConfig) installPipeline(server *genericapiserver.GenericAPIServer) error {
	version := pipelinev1alpha1.SchemeGroupVersion
	if c.recorder == nil || !c.genericConfig.MergedResourceConfig.ResourceEnabled(version.WithResource("requesttraces")) {
		return nil
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(version.Group, Scheme, runtime.NewParameterCodec(Scheme), Codecs)
	group.VersionedResourcesStorageMap[version.Version] = map[string]rest.Storage{
		"requesttraces": requesttrace.NewStorage(c.recorder, Scheme, samplecrdv2alpha1.SchemeGroupVersion),
	}
	if err := server.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("installing the group %s: %w", version.Group, err)
	}
	return nil
}
