package privilegedfields_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/samplecrd/network-apiserver/pkg/apis/samplecrd"
	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
	"github.com/samplecrd/network-apiserver/pkg/apiserver/admission/privilegedfields"
)

var alice = &user.DefaultInfo{Name: "alice"}

// network is what the chain sees of a Network "web" with nothing privileged.
func network(tweaks ...func(*samplecrd.Network)) *samplecrd.Network {
	n := &samplecrd.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	n.Spec.Subnets = []samplecrd.Subnet{{CIDR: "10.1.0.0/24"}}
	for _, tweak := range tweaks {
		tweak(n)
	}
	return n
}

func openStack(set func(*samplecrd.OpenStack)) func(*samplecrd.Network) {
	return func(n *samplecrd.Network) {
		if n.Spec.OpenStack == nil {
			n.Spec.OpenStack = &samplecrd.OpenStack{}
		}
		set(n.Spec.OpenStack)
	}
}

var (
	networkID = openStack(func(o *samplecrd.OpenStack) { o.NetworkID = "5f2c9a1e-6f0c-4c53-8d52-1f1f6a9d3c10" })
	provider  = openStack(func(o *samplecrd.OpenStack) {
		o.Provider = &samplecrd.Provider{NetworkType: "vlan", SegmentationID: new(int32(7))}
	})
	otherSegment  = openStack(func(o *samplecrd.OpenStack) { o.Provider.SegmentationID = new(int32(8)) })
	emptyProvider = openStack(func(o *samplecrd.OpenStack) { o.Provider = &samplecrd.Provider{} })
	external      = openStack(func(o *samplecrd.OpenStack) { o.External = samplecrd.Enabled })
	shared        = openStack(func(o *samplecrd.OpenStack) { o.Shared = samplecrd.Enabled })
	notShared     = openStack(func(o *samplecrd.OpenStack) { o.Shared = samplecrd.Disabled })
	portSecurity  = openStack(func(o *samplecrd.OpenStack) { o.PortSecurity = samplecrd.Disabled })
	credentials   = openStack(func(o *samplecrd.OpenStack) {
		o.CredentialsRef = &samplecrd.CredentialsRef{SecretName: "mine", CloudName: "lab"}
	})
	otherCredentials = openStack(func(o *samplecrd.OpenStack) {
		o.CredentialsRef = &samplecrd.CredentialsRef{SecretName: "mine", CloudName: "prod"}
	})
)

func beingDeleted(n *samplecrd.Network) { n.DeletionTimestamp = &metav1.Time{} }

// request is what the attributes of a write are made of.
type request struct {
	group, resource, subresource string
	object, old                  runtime.Object
	dryRun                       bool
}

func attributes(version string, object, old runtime.Object, tweaks ...func(*request)) admission.Attributes {
	r := request{group: samplecrd.GroupName, resource: "networks", object: object, old: old}
	for _, tweak := range tweaks {
		tweak(&r)
	}
	operation := admission.Create
	if r.old != nil {
		operation = admission.Update
	}
	gv := schema.GroupVersion{Group: r.group, Version: version}
	return admission.NewAttributesRecord(r.object, r.old, gv.WithKind("Network"), "team", "web",
		gv.WithResource(r.resource), r.subresource, operation, nil, r.dryRun, alice)
}

// load makes the plugin as the server does.
func load(a authorizer.Authorizer, config string) (admission.ValidationInterface, error) {
	plugins := admission.NewPlugins()
	privilegedfields.Register(plugins)
	var reader *strings.Reader
	if config != "" {
		reader = strings.NewReader(config)
	}
	made, err := plugins.InitPlugin(privilegedfields.PluginName, reader, initializer.New(nil, nil, nil, a, nil, nil, nil, nil))
	if err != nil {
		return nil, err
	}
	validator, ok := made.(admission.ValidationInterface)
	if !ok {
		return nil, errors.New("the plugin does not validate")
	}
	return validator, nil
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestValidate asks each case of a user without the verb, who is refused where
// wantErr says so, and of one with it, who never is.
func TestValidate(t *testing.T) {
	const needs = `: Forbidden: needs spec.openStack.credentialsRef, or the verb "privileged" on networks.samplecrd.k8s.io in namespace "team"`
	const forbidden = `networks.samplecrd.k8s.io "web" is forbidden: `
	for name, tc := range map[string]struct {
		object, old runtime.Object
		tweak       func(*request)
		wantErr     string
	}{
		"a new Network without OpenStack passes": {
			object: network(),
		},
		"a new Network with what is not privileged passes": {
			object: network(portSecurity),
		},
		"a new Network with an empty provider passes": {
			object: network(emptyProvider),
		},
		"a new Network with networkID is refused": {
			object:  network(networkID),
			wantErr: forbidden + "spec.openStack.networkID" + needs,
		},
		"a new Network with provider is refused": {
			object:  network(provider),
			wantErr: forbidden + "spec.openStack.provider" + needs,
		},
		"a new Network with external is refused": {
			object:  network(external),
			wantErr: forbidden + "spec.openStack.external" + needs,
		},
		"a new Network with shared is refused": {
			object:  network(shared),
			wantErr: forbidden + "spec.openStack.shared" + needs,
		},
		"Disabled is a value too": {
			object:  network(notShared),
			wantErr: forbidden + "spec.openStack.shared" + needs,
		},
		"all refused fields are in one answer": {
			object: network(networkID, provider, external, shared, portSecurity),
			wantErr: forbidden + "[spec.openStack.networkID" + needs + ", spec.openStack.provider" + needs +
				", spec.openStack.external" + needs + ", spec.openStack.shared" + needs + "]",
		},
		"a new Network with credentials of its own passes": {
			object: network(networkID, provider, external, shared, credentials),
		},
		"a dry run is refused": {
			object: network(shared), tweak: func(r *request) { r.dryRun = true },
			wantErr: forbidden + "spec.openStack.shared" + needs,
		},
		"a new Network that is said to be deleted is refused": {
			object:  network(shared, beingDeleted),
			wantErr: forbidden + "spec.openStack.shared" + needs,
		},
		"an update may keep what was there": {
			object: network(networkID, provider, external, shared, portSecurity),
			old:    network(networkID, provider, external, shared),
		},
		"an update that sets a field is refused for this one": {
			object:  network(external, shared),
			old:     network(external),
			wantErr: forbidden + "spec.openStack.shared" + needs,
		},
		"an update that changes a field is refused": {
			object:  network(notShared),
			old:     network(shared),
			wantErr: forbidden + "spec.openStack.shared" + needs,
		},
		"an update inside provider is refused": {
			object:  network(provider, otherSegment),
			old:     network(provider),
			wantErr: forbidden + "spec.openStack.provider" + needs,
		},
		"an update that removes a field is refused": {
			object:  network(),
			old:     network(shared),
			wantErr: forbidden + "spec.openStack.shared" + needs,
		},
		"an update that removes an empty provider passes": {
			object: network(),
			old:    network(emptyProvider),
		},
		"an update in a cloud of its own passes": {
			object: network(shared, credentials),
			old:    network(credentials),
		},
		"an update to another cloud of its own passes": {
			object: network(shared, otherCredentials),
			old:    network(shared, credentials),
		},
		"an update from the cloud of the server to one of its own passes": {
			object: network(external, credentials),
			old:    network(shared),
		},
		"an update that takes the credentials away is refused for all that is set": {
			object:  network(networkID, shared),
			old:     network(networkID, shared, credentials),
			wantErr: forbidden + "[spec.openStack.networkID" + needs + ", spec.openStack.shared" + needs + "]",
		},
		"an update that takes the credentials away where nothing is set passes": {
			object: network(portSecurity),
			old:    network(credentials, portSecurity),
		},
		"an update that takes the credentials away with the fields passes": {
			object: network(),
			old:    network(credentials, shared),
		},
		"an object that is being deleted is not looked at": {
			object: network(shared, beingDeleted),
			old:    network(beingDeleted),
		},
		"a write of status is not looked at": {
			object: network(shared), old: network(),
			tweak: func(r *request) { r.subresource = "status" },
		},
		"another resource of the group is not looked at": {
			object: network(shared),
			tweak:  func(r *request) { r.resource = "others" },
		},
		"networks of another group are not looked at": {
			object: network(shared),
			tweak:  func(r *request) { r.group = "example.com" },
		},
	} {
		for _, version := range []string{samplecrdv1.GroupVersion.Version, samplecrdv2alpha1.GroupVersion.Version} {
			t.Run(name+" in "+version, func(t *testing.T) {
				var tweaks []func(*request)
				if tc.tweak != nil {
					tweaks = append(tweaks, tc.tweak)
				}
				r := attributes(version, tc.object, tc.old, tweaks...)
				for decision, wantErr := range map[authorizer.Decision]string{
					authorizer.DecisionAllow: "", authorizer.DecisionDeny: tc.wantErr, authorizer.DecisionNoOpinion: tc.wantErr,
				} {
					var asked []authorizer.Attributes
					validator, err := load(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
						asked = append(asked, a)
						return decision, "", nil
					}), "")
					if err != nil {
						t.Fatal(err)
					}
					err = validator.Validate(t.Context(), r, nil)
					if diff := cmp.Diff(wantErr, message(err)); diff != "" {
						t.Errorf("%v: error (-want +got):\n%s", decision, diff)
					}
					if wantErr != "" && !apierrors.IsForbidden(err) {
						t.Errorf("%v: error %v is not Forbidden", decision, err)
					}
					var want []authorizer.Attributes // nobody is asked where nothing is refused
					if tc.wantErr != "" {
						want = append(want, authorizer.AttributesRecord{
							User: alice, Verb: "privileged", Namespace: "team", APIGroup: "samplecrd.k8s.io", APIVersion: "*",
							Resource: "networks", Name: "web", ResourceRequest: true,
						})
					}
					if diff := cmp.Diff(want, asked); diff != "" {
						t.Errorf("%v: asked (-want +got):\n%s", decision, diff)
					}
				}
			})
		}
	}
}

func TestAnObjectThatIsNoNetworkIsAnError(t *testing.T) {
	validator, err := load(authorizer.AuthorizerFunc(nil), "")
	if err != nil {
		t.Fatal(err)
	}
	err = validator.Validate(t.Context(), attributes("v1", &samplecrdv1.Network{}, nil), nil)
	if diff := cmp.Diff("Internal error occurred: PrivilegedFields: object is a *v1.Network, not a Network", message(err)); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}

func TestAnErrorOfTheAuthorizer(t *testing.T) {
	const failed = `Internal error occurred: PrivilegedFields: asking for the verb "privileged" on networks.samplecrd.k8s.io "web" in namespace "team": no route`
	for decision, want := range map[authorizer.Decision]string{
		authorizer.DecisionAllow: "", authorizer.DecisionDeny: failed, authorizer.DecisionNoOpinion: failed,
	} {
		validator, err := load(authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return decision, "", errors.New("no route")
		}), "")
		if err != nil {
			t.Fatal(err)
		}
		err = validator.Validate(t.Context(), attributes("v1", network(shared), nil), nil)
		if diff := cmp.Diff(want, message(err)); diff != "" {
			t.Errorf("%v: error (-want +got):\n%s", decision, diff)
		}
		if want != "" && !apierrors.IsInternalError(err) {
			t.Errorf("%v: error %v is not an InternalError", decision, err)
		}
	}
}

func TestHandles(t *testing.T) {
	validator, err := load(authorizer.AuthorizerFunc(nil), "")
	if err != nil {
		t.Fatal(err)
	}
	for operation, want := range map[admission.Operation]bool{
		admission.Create: true, admission.Update: true, admission.Delete: false, admission.Connect: false,
	} {
		if got := validator.Handles(operation); got != want {
			t.Errorf("Handles(%s) = %t, want %t", operation, got, want)
		}
	}
}

func TestWhatStopsTheStart(t *testing.T) {
	for name, tc := range map[string]struct {
		authorizer authorizer.Authorizer
		config     string
		wantErr    string
	}{
		"all is there": {authorizer: authorizer.AuthorizerFunc(nil)},
		"no authorizer": {
			wantErr: `failed to initialize admission plugin "PrivilegedFields": it needs an authorizer`,
		},
		"a configuration, of which there is none": {
			authorizer: authorizer.AuthorizerFunc(nil), config: "{}",
			wantErr: `couldn't init admission plugin "PrivilegedFields": it takes no configuration`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(tc.authorizer, tc.config)
			if diff := cmp.Diff(tc.wantErr, message(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
