// Package apiserver serves the group samplecrd.k8s.io, and the traces of
// requests for it.
package apiserver

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"

	pipelinev1alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/pipeline/v1alpha1"
	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
	"github.com/samplecrd/network-apiserver/pkg/pipeline"
	"github.com/samplecrd/network-apiserver/pkg/registry/network"
)

// Config is what a server is made of.
type Config struct {
	GenericConfig *genericapiserver.RecommendedConfig
	// Recorder is shown what happens to requests, and what it has is served. Nil:
	// nobody is, and nothing.
	Recorder *pipeline.Recorder
}

// CompletedConfig can only be had from Complete.
type CompletedConfig struct {
	genericConfig genericapiserver.CompletedConfig
	recorder      *pipeline.Recorder
}

// Server serves both groups.
type Server struct {
	GenericAPIServer *genericapiserver.GenericAPIServer
}

// DefaultResources are the versions that are served where --runtime-config
// does not say otherwise.
func DefaultResources() *serverstorage.ResourceConfig {
	config := serverstorage.NewResourceConfig()
	config.EnableVersions(samplecrdv1.SchemeGroupVersion, samplecrdv2alpha1.SchemeGroupVersion, pipelinev1alpha1.SchemeGroupVersion)
	return config
}

// Complete fills in what is not set.
func (c *Config) Complete() CompletedConfig {
	if c.Recorder != nil {
		c.Recorder.Observe(&c.GenericConfig.Config)
	}
	return CompletedConfig{c.GenericConfig.Complete(), c.Recorder}
}

// New installs what is enabled on a new server. It fails where no version of
// Networks is, and where their storage can't be opened.
func (c CompletedConfig) New() (*Server, error) {
	server, err := c.genericConfig.New("network-apiserver", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("creating the generic server: %w", err)
	}
	group := genericapiserver.NewDefaultAPIGroupInfo(samplecrd.GroupName, Scheme, runtime.NewParameterCodec(Scheme), Codecs)
	// Discovery calls the first of these preferred, whether it is served or not.
	group.PrioritizedVersions = slices.DeleteFunc(group.PrioritizedVersions, func(version schema.GroupVersion) bool {
		return !c.genericConfig.MergedResourceConfig.ResourceEnabled(version.WithResource("networks"))
	})
	if len(group.PrioritizedVersions) == 0 {
		return nil, fmt.Errorf("installing the group %s: no version is enabled", samplecrd.GroupName)
	}
	storage, err := network.NewStorage(Scheme, c.genericConfig.RESTOptionsGetter)
	if err != nil {
		return nil, err
	}
	if c.recorder != nil {
		for _, store := range storage.Stores() {
			c.recorder.ObserveStore(store)
		}
		defer c.recorder.ObserveRoutes(server)
	}
	// One store for all versions: a second one would be a second watch cache.
	resources := map[string]rest.Storage{
		"networks":        storage.Network,
		"networks/status": storage.Status,
	}
	for _, version := range group.PrioritizedVersions {
		group.VersionedResourcesStorageMap[version.Version] = resources
	}
	if err := server.InstallAPIGroup(&group); err != nil {
		return nil, fmt.Errorf("installing the group %s: %w", samplecrd.GroupName, err)
	}
	if err := c.installPipeline(server); err != nil {
		return nil, err
	}
	return &Server{GenericAPIServer: server}, nil
}
