package defaultcredentials_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission/defaultcredentials"
)

// network is what the chain sees of a Network "web" without credentials.
func network(tweaks ...func(*samplecrd.Network)) *samplecrd.Network {
	n := &samplecrd.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	n.Spec.Subnets = []samplecrd.Subnet{{CIDR: "10.1.0.0/24"}}
	for _, tweak := range tweaks {
		tweak(n)
	}
	return n
}

func credentials(secret, cloud string) func(*samplecrd.Network) {
	return func(n *samplecrd.Network) {
		n.Spec.OpenStack = &samplecrd.OpenStack{CredentialsRef: &samplecrd.CredentialsRef{SecretName: secret, CloudName: cloud}}
	}
}

func beingDeleted(n *samplecrd.Network) { n.DeletionTimestamp = &metav1.Time{} }

func shared(n *samplecrd.Network) {
	if n.Spec.OpenStack == nil {
		n.Spec.OpenStack = &samplecrd.OpenStack{}
	}
	n.Spec.OpenStack.Shared = samplecrd.Enabled
}

// request is what the attributes of a write are made of.
type request struct {
	group, resource, subresource string
	object, old                  runtime.Object
	dryRun                       bool
}

func attributes(object, old runtime.Object, tweaks ...func(*request)) admission.Attributes {
	r := request{group: samplecrd.GroupName, resource: "networks", object: object, old: old}
	for _, tweak := range tweaks {
		tweak(&r)
	}
	operation := admission.Create
	if r.old != nil {
		operation = admission.Update
	}
	gv := samplecrdv1.SchemeGroupVersion
	gv.Group = r.group
	return admission.NewAttributesRecord(r.object, r.old, gv.WithKind("Network"), "team", "web",
		gv.WithResource(r.resource), r.subresource, operation, nil, r.dryRun, nil)
}

// unset in place of an annotation means: there is none.
const unset = "no annotation"

// namespace is the namespace "team" with the annotation.
func namespace(annotation string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	if annotation != unset {
		n.Annotations = map[string]string{defaultcredentials.Annotation: annotation}
	}
	return n
}

// load makes the plugin as the server does.
func load(client kubernetes.Interface, factory informers.SharedInformerFactory, config string) (admission.MutationInterface, error) {
	plugins := admission.NewPlugins()
	defaultcredentials.Register(plugins)
	var reader *strings.Reader
	if config != "" {
		reader = strings.NewReader(config)
	}
	made, err := plugins.InitPlugin(defaultcredentials.PluginName, reader, initializer.New(client, nil, factory, nil, nil, nil, nil, nil))
	if err != nil {
		return nil, err
	}
	mutator, ok := made.(admission.MutationInterface)
	if !ok {
		return nil, errors.New("the plugin does not mutate")
	}
	return mutator, nil
}

// start makes the plugin with these objects in its cache.
func start(t *testing.T, client kubernetes.Interface, cached ...runtime.Object) admission.MutationInterface {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(cached...), 0)
	mutator, err := load(client, factory, "")
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown)
	if err := factory.WaitForCacheSyncWithContext(t.Context()).AsError(); err != nil {
		t.Fatal(err)
	}
	return mutator
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAdmit(t *testing.T) {
	const malformed = `networks.samplecrd.k8s.io "web" is forbidden: namespace "team": metadata.annotations[samplecrd.k8s.io/default-credentials]: Invalid value: `
	const shape = `: must be SECRET/CLOUD: a Secret of the namespace and a cloud in its clouds.yaml`
	for name, tc := range map[string]struct {
		annotation string // "mine/lab" if it is left out
		request    admission.Attributes
		want       *samplecrd.Network
		wantErr    string // how it begins
	}{
		"a new Network gets the default": {
			request: attributes(network(), nil),
			want:    network(credentials("mine", "lab")),
		},
		"a new Network gets it beside what OpenStack knows": {
			request: attributes(network(shared), nil),
			want:    network(credentials("mine", "lab"), shared),
		},
		"a dry run shows it": {
			request: attributes(network(), nil, func(r *request) { r.dryRun = true }),
			want:    network(credentials("mine", "lab")),
		},
		"a new Network keeps its own credentials": {
			request: attributes(network(credentials("own", "prod")), nil),
			want:    network(credentials("own", "prod")),
		},
		"a new Network that is said to be deleted gets it": {
			request: attributes(network(beingDeleted), nil),
			want:    network(beingDeleted, credentials("mine", "lab")),
		},
		"a namespace without a default gives none": {
			annotation: unset,
			request:    attributes(network(), nil),
			want:       network(),
		},
		"an update that leaves out the credentials keeps them": {
			request: attributes(network(), network(credentials("mine", "lab"))),
			want:    network(credentials("mine", "lab")),
		},
		"an update keeps those that were there, not what is now the default": {
			request: attributes(network(shared), network(credentials("own", "prod"))),
			want:    network(credentials("own", "prod"), shared),
		},
		"an update keeps them whatever the annotation says": {
			annotation: "nonsense",
			request:    attributes(network(), network(credentials("own", "prod"))),
			want:       network(credentials("own", "prod")),
		},
		"an update to other credentials counts": {
			request: attributes(network(credentials("own", "prod")), network(credentials("mine", "lab"))),
			want:    network(credentials("own", "prod")),
		},
		"an update of a Network without credentials adds none": {
			request: attributes(network(), network()),
			want:    network(),
		},
		"an update keeps them where there is no default": {
			annotation: unset,
			request:    attributes(network(), network(credentials("own", "prod"))),
			want:       network(credentials("own", "prod")),
		},
		"an object that is being deleted is not touched": {
			request: attributes(network(), network(credentials("mine", "lab"), beingDeleted)),
			want:    network(),
		},
		"a write of status is not touched": {
			request: attributes(network(), network(credentials("mine", "lab")), func(r *request) { r.subresource = "status" }),
			want:    network(),
		},
		"another resource of the group is not touched": {
			request: attributes(network(), nil, func(r *request) { r.resource = "others" }),
			want:    network(),
		},
		"networks of another group are not touched": {
			request: attributes(network(), nil, func(r *request) { r.group = "example.com" }),
			want:    network(),
		},
		"an object that is no Network is an error": {
			request: attributes(&samplecrdv1.Network{}, nil),
			wantErr: "Internal error occurred: DefaultCredentials: object is a *v1.Network, not a Network",
		},
		"an annotation without a cloud is refused": {
			annotation: "mine",
			request:    attributes(network(), nil),
			wantErr:    malformed + `"mine"` + shape,
		},
		"an annotation with an empty cloud is refused": {
			annotation: "mine/",
			request:    attributes(network(), nil),
			wantErr:    malformed + `"mine/"` + shape,
		},
		"an annotation without a Secret is refused": {
			annotation: "/lab",
			request:    attributes(network(), nil),
			wantErr:    malformed + `"/lab"` + shape,
		},
		"an annotation with a namespace is refused": {
			annotation: "team/mine/lab",
			request:    attributes(network(), nil),
			wantErr:    malformed + `"team/mine/lab"` + shape,
		},
		"an annotation with what can be no Secret is refused": {
			annotation: "My_Secret/lab",
			request:    attributes(network(), nil),
			wantErr:    malformed + `"My_Secret/lab": must begin with the name of a Secret: a lowercase RFC 1123 subdomain must consist of`,
		},
		"credentials of its own are taken whatever the annotation says": {
			annotation: "nonsense",
			request:    attributes(network(credentials("own", "prod")), nil),
			want:       network(credentials("own", "prod")),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.annotation == "" {
				tc.annotation = "mine/lab"
			}
			client := fake.NewClientset()
			mutator := start(t, client, namespace(tc.annotation))
			err := mutator.Admit(t.Context(), tc.request, nil)
			if got := message(err); (got == "") != (tc.wantErr == "") || !strings.HasPrefix(got, tc.wantErr) {
				t.Errorf("got error %q, want %q", got, tc.wantErr)
			}
			if tc.wantErr == "" {
				if diff := cmp.Diff(tc.want, tc.request.GetObject()); diff != "" {
					t.Errorf("Network (-want +got):\n%s", diff)
				}
			}
			if calls := client.Actions(); len(calls) > 0 {
				t.Errorf("the namespace is in the cache, yet it was asked for: %v", calls)
			}
		})
	}
}

// What is kept is a copy: who changes the new object must not change the old one.
func TestKeptCredentialsAreACopy(t *testing.T) {
	newNetwork, oldNetwork := network(), network(credentials("mine", "lab"))
	if err := start(t, fake.NewClientset(), namespace("mine/lab")).Admit(t.Context(), attributes(newNetwork, oldNetwork), nil); err != nil {
		t.Fatal(err)
	}
	newNetwork.Spec.OpenStack.CredentialsRef.CloudName = "prod"
	if diff := cmp.Diff(network(credentials("mine", "lab")), oldNetwork); diff != "" {
		t.Errorf("stored Network (-want +got):\n%s", diff)
	}
}

func TestANamespaceThatIsNotInTheCacheIsAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		live    []runtime.Object
		liveErr error
		request admission.Attributes
		want    *samplecrd.Network
		wantErr string
		is      func(error) bool
	}{
		"a namespace that is new counts": {
			live:    []runtime.Object{namespace("mine/lab")},
			request: attributes(network(), nil),
			want:    network(credentials("mine", "lab")),
		},
		"a namespace that is new may have no default": {
			live:    []runtime.Object{namespace(unset)},
			request: attributes(network(), nil),
			want:    network(),
		},
		"an update asks too": {
			live:    []runtime.Object{namespace("mine/lab")},
			request: attributes(network(), network(credentials("own", "prod"))),
			want:    network(credentials("own", "prod")),
		},
		"a namespace that does not exist is not found": {
			request: attributes(network(), nil),
			wantErr: `namespaces "team" not found`,
			is:      apierrors.IsNotFound,
		},
		"a namespace that can't be read is an error of the server": {
			liveErr: errors.New("no route"),
			request: attributes(network(), nil),
			wantErr: `Internal error occurred: DefaultCredentials: reading namespace "team": no route`,
			is:      apierrors.IsInternalError,
		},
		"a namespace that may not be read is an error of the server": {
			liveErr: apierrors.NewForbidden(corev1.Resource("namespaces"), "team", errors.New("no rule")),
			request: attributes(network(), nil),
			wantErr: `Internal error occurred: DefaultCredentials: reading namespace "team": namespaces "team" is forbidden: no rule`,
			is:      apierrors.IsInternalError,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(tc.live...)
			if tc.liveErr != nil {
				client.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, tc.liveErr
				})
			}
			err := start(t, client).Admit(t.Context(), tc.request, nil)
			if diff := cmp.Diff(tc.wantErr, message(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if tc.is != nil && !tc.is(err) {
				t.Errorf("error %v (%T) is of another kind", err, err)
			}
			if tc.wantErr == "" {
				if diff := cmp.Diff(tc.want, tc.request.GetObject()); diff != "" {
					t.Errorf("Network (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestAnEmptyCacheIsWaitedFor(t *testing.T) {
	const notYet = `networks.samplecrd.k8s.io "web" is forbidden: the namespaces are not known yet, try again`
	for name, tc := range map[string]struct {
		request admission.Attributes
		wantErr string // it waits where there is one
	}{
		"a new Network waits and is refused": {
			request: attributes(network(), nil),
			wantErr: notYet,
		},
		"an update that leaves out the credentials does not wait": {
			request: attributes(network(), network(credentials("mine", "lab"))),
		},
		"a Network with credentials does not wait": {
			request: attributes(network(credentials("own", "prod")), nil),
		},
		"an update of a Network without credentials does not wait": {
			request: attributes(network(), network()),
		},
		"an object that is being deleted does not wait": {
			request: attributes(network(), network(credentials("mine", "lab"), beingDeleted)),
		},
		"a write of status does not wait": {
			request: attributes(network(), network(credentials("mine", "lab")), func(r *request) { r.subresource = "status" }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(namespace("mine/lab"))
			factory := informers.NewSharedInformerFactory(client, 0)
			synctest.Test(t, func(t *testing.T) {
				mutator, err := load(client, factory, "")
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				err = mutator.Admit(t.Context(), tc.request, nil)
				if diff := cmp.Diff(tc.wantErr, message(err)); diff != "" {
					t.Errorf("error (-want +got):\n%s", diff)
				}
				if waited, want := time.Since(begin) > 0, tc.wantErr != ""; waited != want {
					t.Errorf("waited: %t, want %t", waited, want)
				}
			})
		})
	}
}

func TestHandles(t *testing.T) {
	mutator := start(t, fake.NewClientset())
	for operation, want := range map[admission.Operation]bool{
		admission.Create: true, admission.Update: true, admission.Delete: false, admission.Connect: false,
	} {
		if got := mutator.Handles(operation); got != want {
			t.Errorf("Handles(%s) = %t, want %t", operation, got, want)
		}
	}
}

func TestWhatStopsTheStart(t *testing.T) {
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	for name, tc := range map[string]struct {
		client  kubernetes.Interface
		config  string
		wantErr string
	}{
		"all is there": {client: client},
		"no client": {
			wantErr: `failed to initialize admission plugin "DefaultCredentials": it needs informers and a client of the cluster, to read namespaces`,
		},
		"a configuration, of which there is none": {
			client: client, config: "{}",
			wantErr: `couldn't init admission plugin "DefaultCredentials": it takes no configuration`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(tc.client, factory, tc.config)
			if diff := cmp.Diff(tc.wantErr, message(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
