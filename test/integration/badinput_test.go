package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Network as JSON in two parts, that both versions take; VERSION stands for one.
const (
	head = `{"apiVersion":"samplecrd.k8s.io/VERSION","kind":"Network","metadata":{"name":"bad"},`
	tail = `"spec":{"cidr":"10.0.0.0/24","subnets":[{"cidr":"10.0.0.0/24"}]}}`
)

func TestBadInputIsRefusedAndNothingIsStored(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		method      string // POST if empty
		path        string // behind the collection
		contentType string // JSON if empty
		body        string
		wantStatus  int
		wantText    string
	}{
		"JSON that ends too early":       {body: head, wantStatus: http.StatusBadRequest, wantText: "unexpected end of JSON"},
		"JSON with a comma too many":     {body: head + `,` + tail, wantStatus: http.StatusBadRequest, wantText: "invalid character"},
		"bytes that are no text":         {body: "\x00\xff\xfe", wantStatus: http.StatusBadRequest},
		"YAML with a tab":                {contentType: yamlType, body: "kind: Network\n\tspec: {}", wantStatus: http.StatusBadRequest, wantText: "yaml"},
		"protobuf without its magic":     {contentType: protobufType, body: head + tail, wantStatus: http.StatusBadRequest},
		"protobuf that ends too early":   {contentType: protobufType, body: "k8s\x00\x0a\xff\xff\xff\xff\x0f", wantStatus: http.StatusBadRequest},
		"no body":                        {wantStatus: http.StatusBadRequest},
		"null":                           {body: "null", wantStatus: http.StatusUnprocessableEntity, wantText: "name or generateName is required"},
		"a list":                         {body: "[]", wantStatus: http.StatusBadRequest},
		"a number":                       {body: "1e999", wantStatus: http.StatusBadRequest},
		"nulls for everything":           {body: strings.NewReplacer(`{"name":"bad"}`, "null").Replace(head) + `"spec":null,"status":null}`, wantStatus: http.StatusUnprocessableEntity, wantText: "name or generateName is required"},
		"a text for a list":              {body: head + `"spec":{"additionalSubnets":"a","subnets":"a"}}`, wantStatus: http.StatusBadRequest, wantText: "cannot unmarshal string"},
		"a text for a number":            {body: head + `"spec":{"mtu":"1500"}}`, wantStatus: http.StatusBadRequest, wantText: "cannot unmarshal string"},
		"a number that is too large":     {body: head + `"spec":{"mtu":2147483648}}`, wantStatus: http.StatusBadRequest, wantText: "2147483648"},
		"another version of the group":   {body: strings.Replace(head, "VERSION", "v9", 1) + tail, wantStatus: http.StatusBadRequest, wantText: "v9"},
		"another group":                  {body: strings.Replace(head, "samplecrd.k8s.io", "apps", 1) + tail, wantStatus: http.StatusBadRequest, wantText: "apps"},
		"another kind":                   {body: strings.Replace(head, `"Network"`, `"Router"`, 1) + tail, wantStatus: http.StatusBadRequest, wantText: "Router"},
		"a list of Networks":             {body: strings.Replace(head, `"Network"`, `"NetworkList"`, 1) + tail, wantStatus: http.StatusBadRequest, wantText: "NetworkList"},
		"another namespace":              {body: strings.Replace(head, `"name":"bad"`, `"name":"bad","namespace":"other"`, 1) + tail, wantStatus: http.StatusBadRequest, wantText: "namespace"},
		"a body of 10 MB":                {body: head + `"metadata":{"annotations":{"a":"` + strings.Repeat("a", 10<<20) + `"}}}`, wantStatus: http.StatusRequestEntityTooLarge, wantText: "limit"},
		"annotations of 1 MB":            {body: strings.Replace(head, `"name":"bad"`, `"name":"bad","annotations":{"a":"`+strings.Repeat("a", 1<<20)+`"}`, 1) + tail, wantStatus: http.StatusUnprocessableEntity, wantText: "metadata.annotations"},
		"deep nesting":                   {body: head + `"spec":` + strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + "}", wantStatus: http.StatusBadRequest, wantText: "depth"},
		"deep nesting in YAML":           {contentType: yamlType, body: "a: " + strings.Repeat("[", 100_000), wantStatus: http.StatusBadRequest},
		"YAML aliases that grow":         {contentType: yamlType, body: aliases(), wantStatus: http.StatusBadRequest, wantText: "excessive aliasing"},
		"plain text":                     {contentType: "text/plain", body: head + tail, wantStatus: http.StatusUnsupportedMediaType},
		"a type that is none":            {contentType: "a/b/c", body: head + tail, wantStatus: http.StatusUnsupportedMediaType},
		"a field nobody knows":           {path: "?fieldValidation=Strict", body: head + `"spek":{},` + tail, wantStatus: http.StatusBadRequest, wantText: `unknown field \"spek\"`},
		"a field given twice":            {path: "?fieldValidation=Strict", body: head + `"kind":"Network",` + strings.Replace(tail, `"spec":{`, `"spec":{"mtu":1500,"mtu":1501,`, 1), wantStatus: http.StatusBadRequest, wantText: `duplicate field \"spec.mtu\"`},
		"a field in another case":        {path: "?fieldValidation=Strict", body: head + strings.Replace(tail, `"spec":{`, `"spec":{"MTU":1500,`, 1), wantStatus: http.StatusBadRequest, wantText: `unknown field \"spec.MTU\"`},
		"a validation that is none":      {path: "?fieldValidation=Maybe", body: head + tail, wantStatus: http.StatusUnprocessableEntity, wantText: "fieldValidation"},
		"a dry run that is none":         {path: "?dryRun=Maybe", body: head + tail, wantStatus: http.StatusUnprocessableEntity, wantText: "dryRun"},
		"a name in another script":       {body: strings.Replace(head, `"bad"`, `"сеть"`, 1) + tail, wantStatus: http.StatusUnprocessableEntity, wantText: "metadata.name"},
		"a name of 254 characters":       {body: strings.Replace(head, `"bad"`, `"`+strings.Repeat("a", 254)+`"`, 1) + tail, wantStatus: http.StatusUnprocessableEntity, wantText: "metadata.name"},
		"a name that leads elsewhere":    {body: strings.Replace(head, `"bad"`, `"../bad"`, 1) + tail, wantStatus: http.StatusUnprocessableEntity, wantText: "metadata.name"},
		"a CIDR in wide digits":          {body: head + strings.ReplaceAll(tail, "10.0.0.0", "１0.0.0.0"), wantStatus: http.StatusUnprocessableEntity, wantText: "cidr"},
		"a CIDR with a zero byte":        {body: head + strings.ReplaceAll(tail, "10.0.0.0", `10.0.0.0\u0000`), wantStatus: http.StatusUnprocessableEntity, wantText: "cidr"},
		"seventeen subnets":              {body: head + manySubnets(17), wantStatus: http.StatusUnprocessableEntity, wantText: "must have at most"},
		"two thousand subnets":           {body: head + manySubnets(2000), wantStatus: http.StatusUnprocessableEntity, wantText: "must have at most"},
		"a patch of another type":        {method: http.MethodPatch, path: "/bad", contentType: jsonType, body: `{}`, wantStatus: http.StatusUnsupportedMediaType},
		"an apply without its manager":   {method: http.MethodPatch, path: "/bad", contentType: applyPatch, body: head + tail, wantStatus: http.StatusUnprocessableEntity, wantText: "fieldManager"},
		"an apply of another name":       {method: http.MethodPatch, path: "/other?fieldManager=a", contentType: applyPatch, body: head + `"spec":{}}`, wantStatus: http.StatusBadRequest, wantText: "name"},
		"an apply of an alias bomb":      {method: http.MethodPatch, path: "/bad?fieldManager=a", contentType: applyPatch, body: aliases(), wantStatus: http.StatusBadRequest},
		"options of a deletion as text":  {method: http.MethodDelete, path: "/bad", body: `"now"`, wantStatus: http.StatusBadRequest},
		"a status of what is not there":  {method: http.MethodPut, path: "/bad/status", body: head + tail, wantStatus: http.StatusNotFound},
		"a subresource that is none":     {path: "/bad/scale", body: "{}", wantStatus: http.StatusNotFound},
		"a label selector that is none":  {method: http.MethodGet, path: "?labelSelector=((", wantStatus: http.StatusBadRequest},
		"a field selector that is none":  {method: http.MethodGet, path: "?fieldSelector=spec.mtu=1", wantStatus: http.StatusBadRequest, wantText: "not a known field selector"},
		"a resourceVersion that is none": {method: http.MethodGet, path: "?resourceVersion=new", wantStatus: http.StatusBadRequest},
		"a continuation that is none":    {method: http.MethodGet, path: "?limit=1&continue=next", wantStatus: http.StatusBadRequest},
		"a limit that is none":           {method: http.MethodGet, path: "?limit=few", wantStatus: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, version := range apiVersions {
				r := request{
					method: tc.method, path: shared.networks(t).path(version) + tc.path, body: strings.ReplaceAll(tc.body, "VERSION", version),
					header: map[string]string{"Content-Type": tc.contentType},
				}
				if r.method == "" {
					r.method = http.MethodPost
				}
				if tc.contentType == "" {
					r.header["Content-Type"] = jsonType
				}
				got := shared.send(t, r)
				if got.status != tc.wantStatus || !strings.Contains(string(got.body), tc.wantText) {
					t.Errorf("%s: got HTTP %d %.300s, want HTTP %d with %q", version, got.status, got.body, tc.wantStatus, tc.wantText)
				}
				var status metav1.Status
				if got.into(t, &status); status.Kind != "Status" || int(status.Code) != got.status {
					t.Errorf("%s: the refusal is not a Status: %.300s", version, got.body)
				}
			}
			list, err := shared.networks(t).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) > 0 {
				t.Errorf("got %d Networks stored, want none", len(list.Items))
			}
			shared.get(t, "/readyz", nil)
		})
	}
}

func TestBadPatchesLeaveTheNetworkAsItIs(t *testing.T) {
	t.Parallel()
	n := shared.networks(t)
	n.create(newNetwork("good"))
	want := n.awaitReady("good")
	for name, tc := range map[string]struct {
		contentType, body string
		wantStatus        int
	}{
		"a JSON patch that is no list":      {jsonPatch, `{"op":"add"}`, http.StatusBadRequest},
		"a JSON patch of what is not there": {jsonPatch, `[{"op":"replace","path":"/spec/nowhere/0","value":1}]`, http.StatusUnprocessableEntity},
		"a JSON patch of too many steps":    {jsonPatch, "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"Network"},`, 10_001) + `{"op":"test","path":"/kind","value":"Network"}]`, http.StatusRequestEntityTooLarge},
		"a merge patch that is no object":   {mergePatch, `[]`, http.StatusBadRequest},
		"a merge patch that ends too early": {mergePatch, `{"spec":`, http.StatusBadRequest},
		"a merge patch to another kind":     {mergePatch, `{"kind":"Router"}`, http.StatusUnprocessableEntity},
		"a merge patch of the name":         {mergePatch, `{"metadata":{"name":"other"}}`, http.StatusBadRequest},
		"a merge patch of the uid":          {mergePatch, `{"metadata":{"uid":"other"}}`, http.StatusUnprocessableEntity},
		"a merge patch of an old version":   {mergePatch, `{"metadata":{"resourceVersion":"1"},"spec":{"mtu":1400}}`, http.StatusConflict},
		"a merge patch that empties spec":   {mergePatch, `{"spec":null}`, http.StatusUnprocessableEntity},
		"an apply of another type":          {applyPatch, "apiVersion: samplecrd.k8s.io/v1\nkind: Network\nspec: text", http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range apiVersions {
				got := shared.send(t, request{
					method: http.MethodPatch, path: n.path(version, "good") + "?fieldManager=test",
					header: map[string]string{"Content-Type": tc.contentType},
					body:   strings.ReplaceAll(tc.body, "samplecrd.k8s.io/v1", "samplecrd.k8s.io/"+version),
				})
				if got.status != tc.wantStatus {
					t.Errorf("%s: got HTTP %d %.300s, want HTTP %d", version, got.status, got.body, tc.wantStatus)
				}
			}
		})
	}
	if diff := cmp.Diff(want, n.get("good")); diff != "" {
		t.Errorf("the Network changed (-before +after):\n%s", diff)
	}
}

// aliases is a small document that is huge once its aliases are followed.
func aliases() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := range 12 {
		alias := fmt.Sprintf("*a%d", i)
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.Join([]string{alias, alias, alias, alias, alias, alias, alias, alias, alias}, ","))
	}
	return b.String()
}

// manySubnets is the spec, in both versions' shapes, of that many subnets.
func manySubnets(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"cidr":"10.%d.%d.0/24"}`, i/256, i%256)
	}
	return fmt.Sprintf(`"spec":{"cidr":"10.0.0.0/24","additionalSubnets":[%s],"subnets":[%s]}}`,
		strings.Join(all[1:], ","), strings.Join(all, ","))
}

func TestFieldsNobodyKnowsWarnUnlessToldOtherwise(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		query        string
		wantWarnings int
	}{
		"by default there is a warning": {wantWarnings: 2},
		"Warn warns":                    {query: "?fieldValidation=Warn", wantWarnings: 2},
		"Ignore says nothing":           {query: "?fieldValidation=Ignore"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, version := range apiVersions {
				for _, contentType := range []string{jsonType, yamlType} {
					got := shared.send(t, request{
						method: http.MethodPost, path: shared.networks(t).path(version) + tc.query,
						header: map[string]string{"Content-Type": contentType},
						body:   fmt.Sprintf(manifests[version], "known", `"mtu":1500,"mtu":1400,"wide":true,`),
					})
					if got.status != http.StatusCreated {
						t.Fatalf("%s as %s: got HTTP %d %s", version, contentType, got.status, got.body)
					}
					if warnings := got.warnings(); len(warnings) != tc.wantWarnings {
						t.Errorf("%s as %s: got warnings %q, want %d", version, contentType, warnings, tc.wantWarnings)
					}
					shared.networks(t).delete("known")
					shared.networks(t).awaitGone("known")
				}
			}
		})
	}
}

// manifests are Networks with one subnet by version, with room for a name and
// for more of the spec.
var manifests = map[string]string{
	"v1":       `{"apiVersion":"samplecrd.k8s.io/v1","kind":"Network","metadata":{"name":%q},"spec":{%s"cidr":"10.0.0.0/24"}}`,
	"v2alpha1": `{"apiVersion":"samplecrd.k8s.io/v2alpha1","kind":"Network","metadata":{"name":%q},"spec":{%s"subnets":[{"cidr":"10.0.0.0/24"}]}}`,
}
