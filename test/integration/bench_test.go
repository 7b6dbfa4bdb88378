package integration

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	neutronnetworks "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	neutronsubnets "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

const (
	// atOnce is how many Networks the controller works on at once.
	atOnce = 8
	// latency is what a call to a real Neutron takes, at the least.
	latency = 20 * time.Millisecond
)

// BenchmarkCreate makes networks by the controller, which writes down each
// step, and by a loop that makes the same calls and writes down nothing. Both
// times run from the first call.
func BenchmarkCreate(b *testing.B) {
	logToFile(b)
	var byLoop, byController time.Duration
	for b.Loop() {
		byLoop += loopCreates(b)
		byController += controllerCreates(b)
	}
	made := float64(b.N * many)
	b.ReportMetric(made/byLoop.Seconds(), "loop-networks/s")
	b.ReportMetric(made/byController.Seconds(), "controller-networks/s")
	b.ReportMetric(byLoop.Seconds()/byController.Seconds(), "ratio")
	b.ReportMetric(0, "ns/op") // of both, and so of neither
}

func loopCreates(b *testing.B) time.Duration {
	f := newFront(b)
	f.latency = latency
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = atOnce
	defer transport.CloseIdleConnections()
	provider := &gophercloud.ProviderClient{HTTPClient: http.Client{Transport: transport}}
	provider.SetToken("it:admin:" + project + ":admin")
	client := &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: f.url + "/v2.0/", Type: "network"}
	subnet := newNetwork("declared").Spec.Subnet
	inParallel(func(i int) {
		name, description := nameOf(i), fmt.Sprintf("number %d of a loop that owns nothing", i)
		made, err := neutronnetworks.Create(b.Context(), client, neutronnetworks.CreateOpts{
			Name: name, Description: description, AdminStateUp: new(true),
		}).Extract()
		if err != nil {
			b.Error(err)
			return
		}
		_, err = neutronsubnets.Create(b.Context(), client, neutronsubnets.CreateOpts{
			NetworkID: made.ID, Name: name, Description: description, EnableDHCP: new(true),
			CIDR: subnet.CIDR, IPVersion: gophercloud.IPv4, GatewayIP: &subnet.Gateway,
		}).Extract()
		if err != nil {
			b.Error(err)
		}
	})
	return time.Since(f.take()[0].at)
}

// controllerCreates starts a server that finds the Networks declared.
func controllerCreates(b *testing.B) time.Duration {
	f := newFront(b)
	f.latency = latency
	// What recording costs is another benchmark.
	const off = "--pipeline-traces=0"
	s := newServer(b, "--controller=false", off)
	n := s.networks(b)
	inParallel(func(i int) {
		if _, err := n.Create(b.Context(), newNetwork(nameOf(i)), metav1.CreateOptions{}); err != nil {
			b.Error(err)
		}
	})
	s = s.restart(b, append(f.flags(b), off, fmt.Sprintf("--concurrent-network-syncs=%d", atOnce))...)
	f.await(b, many, func(c call) bool { return c.method == http.MethodPost && c.path == "subnets" })
	// A watch from the start would take time from the server.
	n = s.networks(b)
	list, err := n.List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, network := range list.Items {
		if condition(&network, samplecrdv1.ConditionReady).Reason != samplecrdv1.ReasonSuccess {
			n.awaitReady(network.Name)
		}
	}
	took := time.Since(f.take()[0].at)
	if err := s.stop(); err != nil {
		b.Fatal(err)
	}
	return took
}

// inParallel does it many times, some at once.
func inParallel(do func(i int)) {
	var count atomic.Int64
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := count.Add(1); i <= many; i = count.Add(1) {
				do(int(i))
			}
		})
	}
	workers.Wait()
}

// BenchmarkList reads many Networks in each form there is.
func BenchmarkList(b *testing.B) {
	logToFile(b)
	s := newFront(b).fill(b)
	config := rest.CopyConfig(s.config)
	config.DisableCompression = true
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		b.Fatal(err)
	}
	for _, version := range apiVersions {
		for form, mediaType := range map[string]string{"protobuf": protobufType, "JSON": jsonType} {
			b.Run(version+"/"+form, func(b *testing.B) {
				request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.config.Host+"/apis/samplecrd.k8s.io/"+version+"/networks", nil)
				if err != nil {
					b.Fatal(err)
				}
				request.Header.Set("Accept", mediaType)
				var size int64
				for b.Loop() {
					response, err := client.Do(request)
					if err != nil {
						b.Fatal(err)
					}
					size, err = io.Copy(io.Discard, response.Body)
					response.Body.Close()
					if err != nil || response.StatusCode != http.StatusOK {
						b.Fatalf("got %s and error %v", response.Status, err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*many), "ns/Network")
				b.ReportMetric(float64(size)/many, "B/Network")
			})
		}
	}
}

// logToFile keeps what servers log apart from the figures.
func logToFile(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	klog.LogToStderr(false)
	klog.SetOutput(file)
	b.Cleanup(func() {
		klog.Flush()
		klog.LogToStderr(true)
		file.Close()
	})
}
