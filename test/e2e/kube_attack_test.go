//go:build kube

package e2e

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
)

// attack is a request as it goes over the wire to the server's own port.
type attack struct {
	as      *tls.Certificate // of the client; nil: none
	line    string           // METHOD TARGET
	headers []string         // beside Host, Connection and Content-Length
	body    string
	want    int // the status
}

// testAttacks sends what the front proxy never would, on the port that it is not
// the only one to reach.
func (c *cluster) testAttacks(t *testing.T) {
	r := c.startReplica(t, newCloud(t), "--etcd-prefix=/attacks")
	c.waitServed(t)
	namespace := c.newNamespace(t, "attacked", nil)
	elsewhere := c.newNamespace(t, "elsewhere", nil)
	createNetwork(t, c.networks.SamplecrdV1().Networks(namespace), "web")
	createNetwork(t, c.networks.SamplecrdV1().Networks(elsewhere), "secret")
	converge(t, c.networks.SamplecrdV1().Networks(metav1.NamespaceAll))
	before := c.allNetworks(t)

	clientCA, frontProxyCA := c.authority(t, "ca"), c.authority(t, "front-proxy-ca")
	frontProxy := frontProxyCA.client(t, "front-proxy-client")
	viewer, editor := c.account(t, namespace, "view"), c.account(t, namespace, "edit")
	view, edit := bearer(c.token(t, viewer)), bearer(c.token(t, editor))
	signer := c.authority(t, "service-account").key

	const api = "/apis/samplecrd.k8s.io/v1"
	networks, web := api+"/namespaces/attacked/networks", api+"/namespaces/attacked/networks/web"
	hidden := api + "/namespaces/elsewhere/networks"
	asAdmin := []string{"X-Remote-User: admin", "X-Remote-Group: system:masters"}
	valid := `{"apiVersion":"samplecrd.k8s.io/v1","kind":"Network","metadata":{"name":"planted"},"spec":{"cidr":"10.0.0.0/24"}}`
	jsonBody, yamlBody := "Content-Type: application/json", "Content-Type: application/yaml"

	// Who is let in shows that the rest is not refused for a mistake of ours.
	for name, control := range map[string]attack{
		"the front proxy speaks for an administrator": {as: frontProxy, line: "GET " + hidden, headers: asAdmin},
		"a viewer reads what he may":                  {line: "GET " + networks, headers: []string{view}},
		"a token made with the key of the cluster":    {line: "GET " + networks, headers: []string{bearer(forge(t, signer, viewer, time.Hour))}},
		"an editor writes what he may":                {line: "POST " + networks + "?dryRun=All", headers: []string{edit, jsonBody}, body: valid},
		"a probe looks whether the server lives":      {line: "GET /livez"},
		"a probe looks whether the server is ready":   {line: "GET /readyz"},
		"a probe of old looks at its health":          {line: "GET /healthz"},
	} {
		if got, body := control.send(t, r.port); got >= http.StatusMultipleChoices {
			t.Errorf("%s: got %d: %s", name, got, body)
		}
	}

	const unauthorized, forbidden = http.StatusUnauthorized, http.StatusForbidden
	attacks := map[string]attack{
		// Whose name is in a header.
		"the name of another user, without a certificate":              {line: "GET " + networks, headers: []string{"X-Remote-User: admin"}, want: forbidden},
		"a group of administrators, without a certificate":             {line: "GET " + networks, headers: asAdmin, want: forbidden},
		"a UID of another user, without a certificate":                 {line: "GET " + networks, headers: append([]string{"X-Remote-Uid: 1"}, asAdmin...), want: forbidden},
		"extra attributes, without a certificate":                      {line: "GET " + networks, headers: append([]string{"X-Remote-Extra-Scopes: all"}, asAdmin...), want: forbidden},
		"a group of administrators beside the token of a viewer":       {line: "GET " + hidden, headers: append([]string{view}, asAdmin...), want: forbidden},
		"two names, the second an administrator's":                     {line: "GET " + networks, headers: []string{"X-Remote-User: nobody", "X-Remote-User: admin", "X-Remote-Group: system:masters"}, want: forbidden},
		"names in headers with underscores":                            {line: "GET " + networks, headers: []string{"X_Remote_User: admin", "X_Remote_Group: system:masters"}, want: forbidden},
		"names in a header with a space before the colon":              {line: "GET " + networks, headers: []string{"X-Remote-User : admin", "X-Remote-Group : system:masters"}, want: http.StatusBadRequest},
		"names in headers that stand for the proxy's address":          {line: "GET " + networks, headers: []string{"X-Forwarded-For: 127.0.0.1", "X-Real-IP: 127.0.0.1", "X-Forwarded-User: admin", "X-Forwarded-Groups: system:masters", "Forwarded: for=127.0.0.1;by=front-proxy-client"}, want: forbidden},
		"a path that only the front proxy is said to have let through": {line: "GET /livez/../metrics", headers: []string{"X-Original-URL: /livez", "X-Rewrite-URL: /livez", "X-Forwarded-Uri: /livez"}, want: forbidden},
		"a front proxy of another CA":                                  {as: newAuthority(t).client(t, "front-proxy-client"), line: "GET " + networks, headers: asAdmin, want: unauthorized},
		"a front proxy that signed its own certificate":                {as: selfSigned(t, "front-proxy-client"), line: "GET " + networks, headers: asAdmin, want: unauthorized},
		"an administrator of another CA":                               {as: newAuthority(t).client(t, "admin", "system:masters"), line: "GET " + networks, want: unauthorized},
		"a user of the cluster whose name is the front proxy's":        {as: clientCA.client(t, "front-proxy-client"), line: "GET " + networks, headers: asAdmin, want: forbidden},
		"a client of the front proxy's CA with another name":           {as: frontProxyCA.client(t, "stranger"), line: "GET " + networks, headers: asAdmin, want: unauthorized},
		"an administrator by the CA of the front proxy":                {as: frontProxyCA.client(t, "admin", "system:masters"), line: "GET " + networks, want: unauthorized},
		"the front proxy with a certificate that has expired":          {as: frontProxyCA.expiredClient(t, "front-proxy-client"), line: "GET " + networks, headers: asAdmin, want: unauthorized},
		"the front proxy in nobody's name":                             {as: frontProxy, line: "GET " + networks, want: unauthorized},
		"the front proxy for a user who may nothing":                   {as: frontProxy, line: "GET " + networks, headers: []string{"X-Remote-User: nobody"}, want: forbidden},

		// Nobody at all.
		"anonymous lists":                            {line: "GET " + networks, want: forbidden},
		"anonymous gets":                             {line: "GET " + web, want: forbidden},
		"anonymous watches":                          {line: "GET " + networks + "?watch=true", want: forbidden},
		"anonymous creates":                          {line: "POST " + networks, headers: []string{jsonBody}, body: valid, want: forbidden},
		"anonymous updates":                          {line: "PUT " + web, headers: []string{jsonBody}, body: valid, want: forbidden},
		"anonymous patches":                          {line: "PATCH " + web, headers: []string{"Content-Type: application/merge-patch+json"}, body: `{"spec":{"cidr":"10.1.0.0/24"}}`, want: forbidden},
		"anonymous applies":                          {line: "PATCH " + web + "?fieldManager=x&force=true", headers: []string{"Content-Type: application/apply-patch+yaml"}, body: valid, want: forbidden},
		"anonymous deletes":                          {line: "DELETE " + web, want: forbidden},
		"anonymous deletes all":                      {line: "DELETE " + networks, want: forbidden},
		"anonymous writes a status":                  {line: "PUT " + web + "/status", headers: []string{jsonBody}, body: valid, want: forbidden},
		"anonymous finds the groups":                 {line: "GET /apis", want: forbidden},
		"anonymous finds the resources":              {line: "GET " + api, want: forbidden},
		"anonymous reads the schema":                 {line: "GET /openapi/v3", want: forbidden},
		"anonymous reads the metrics":                {line: "GET /metrics", want: forbidden},
		"anonymous takes a profile":                  {line: "GET /debug/pprof/heap", want: forbidden},
		"anonymous reads the flags":                  {line: "GET /debug/flags/v", want: forbidden},
		"anonymous sets the verbosity":               {line: "PUT /debug/flags/v", body: "10", want: forbidden},
		"anonymous asks with a method nobody knows":  {line: "BREW " + networks, want: forbidden},
		"anonymous wants a tunnel":                   {line: "CONNECT 127.0.0.1:22", want: forbidden},
		"anonymous wants another server to be asked": {line: "GET http://127.0.0.1:2379/version-of-etcd", want: forbidden},
		"a viewer takes a profile":                   {line: "GET /debug/pprof/heap", headers: []string{view}, want: forbidden},
		"a viewer writes under the name of a read":   {line: "POST " + web, headers: []string{view, "X-HTTP-Method-Override: GET", "X-HTTP-Method: GET", "X-Method-Override: GET"}, want: forbidden},
		"a viewer deletes under the name of a read":  {line: "DELETE " + web + "?_method=GET&method=GET", headers: []string{view, "X-HTTP-Method-Override: GET"}, want: forbidden},

		// A connection that is to become another.
		"anonymous upgrades discovery to SPDY":            {line: "GET " + api, headers: []string{"Connection: Upgrade", "Upgrade: SPDY/3.1"}, want: forbidden},
		"anonymous upgrades discovery to a web socket":    {line: "GET " + api, headers: []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=="}, want: forbidden},
		"anonymous upgrades discovery to plain HTTP/2":    {line: "GET " + api, headers: []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"}, want: forbidden},
		"a viewer watches elsewhere over a web socket":    {line: "GET " + hidden + "?watch=true", headers: []string{view, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=="}, want: forbidden},
		"a request within a request of two lengths":       {line: "GET " + networks, headers: []string{"Content-Length: 5", "Content-Length: 6"}, body: "GET /", want: http.StatusBadRequest},
		"a request within a request that comes in chunks": {line: "POST " + networks, headers: []string{"Transfer-Encoding: chunked", "Content-Length: 4"}, body: "0\r\n\r\nGET " + networks + " HTTP/1.1\r\nX-Remote-User: admin\r\n\r\n", want: forbidden},
		"two hosts": {line: "GET " + networks, headers: []string{"Host: elsewhere"}, want: http.StatusBadRequest},

		// A path that is not what it seems.
		"a viewer climbs out of his namespace":                    {line: "GET " + networks + "/../../elsewhere/networks", headers: []string{view}, want: forbidden},
		"a viewer climbs out in escaped dots":                     {line: "GET " + networks + "/%2e%2e/%2e%2e/elsewhere/networks", headers: []string{view}, want: forbidden},
		"a viewer climbs out in escaped slashes":                  {line: "GET " + api + "/namespaces/attacked%2f..%2felsewhere/networks", headers: []string{view}, want: forbidden},
		"a viewer climbs out in dots and slashes that are double": {line: "GET " + networks + "/%252e%252e%252f%252e%252e%252felsewhere%252fnetworks", headers: []string{view}, want: http.StatusBadRequest},
		"a viewer climbs out of the group":                        {line: "GET " + api + "/../../../metrics", headers: []string{view}, want: forbidden},
		"a viewer climbs out of the schema":                       {line: "GET /openapi/../metrics", headers: []string{view}, want: http.StatusNotFound},
		"a viewer doubles the slashes":                            {line: "GET /" + strings.ReplaceAll(hidden, "/", "//"), headers: []string{view}, want: forbidden},
		"a viewer ends a name with a zero byte":                   {line: "GET " + api + "/namespaces/elsewhere%00attacked/networks", headers: []string{view}, want: forbidden},
		"a viewer writes the group in capitals":                   {line: "GET " + strings.Replace(hidden, "samplecrd", "SAMPLECRD", 1), headers: []string{view}, want: forbidden},
		"a viewer asks for all namespaces":                        {line: "GET " + api + "/networks", headers: []string{view}, want: forbidden},
		"a viewer picks another namespace by a selector":          {line: "GET " + api + "/networks?fieldSelector=metadata.namespace%3Dattacked", headers: []string{view}, want: forbidden},

		// Tokens, and who would be somebody else.
		"a token that is none":                   {line: "GET " + networks, headers: []string{"Authorization: Bearer x.y.z"}, want: unauthorized},
		"a token of a megabyte's third":          {line: "GET " + networks, headers: []string{"Authorization: Bearer " + strings.Repeat("a", 300_000)}, want: unauthorized},
		"a name and a password":                  {line: "GET " + networks, headers: []string{"Authorization: Basic YWRtaW46YWRtaW4="}, want: forbidden},
		"a token that has expired":               {line: "GET " + networks, headers: []string{bearer(forge(t, signer, viewer, -time.Hour))}, want: unauthorized},
		"a token of another key":                 {line: "GET " + networks, headers: []string{bearer(forge(t, newKey(t), viewer, time.Hour))}, want: unauthorized},
		"a token without a signature":            {line: "GET " + networks, headers: []string{bearer(forge(t, nil, viewer, time.Hour))}, want: unauthorized},
		"a token of another audience":            {line: "GET " + networks, headers: []string{bearer(c.token(t, viewer, "https://elsewhere"))}, want: unauthorized},
		"a token that is none before a good one": {line: "GET " + networks, headers: []string{"Authorization: Bearer x.y.z", view}, want: unauthorized},
		"a viewer as an administrator":           {line: "GET " + networks, headers: []string{view, "Impersonate-User: admin", "Impersonate-Group: system:masters"}, want: forbidden},
		"a viewer as another user":               {line: "GET " + networks, headers: []string{view, "Impersonate-User: somebody"}, want: forbidden},
		"a viewer with the UID of another":       {line: "GET " + networks, headers: []string{view, "Impersonate-User: " + viewer.name(), "Impersonate-Uid: 1"}, want: forbidden},
		"anonymous as an administrator":          {line: "GET " + networks, headers: []string{"Impersonate-User: admin", "Impersonate-Group: system:masters"}, want: forbidden},
		"a group without a user to be":           {line: "GET " + networks, headers: []string{view, "Impersonate-Group: system:masters"}, want: http.StatusBadRequest},
		"an editor with a field of the operator": {line: "POST " + networks, headers: []string{edit, jsonBody}, body: strings.Replace(valid, `"cidr"`, `"openStack":{"shared":"Enabled"},"cidr"`, 1), want: forbidden},

		// What is more than it seems.
		"aliases that grow a billionfold":           {line: "POST " + networks, headers: []string{edit, yamlBody}, body: aliases(), want: http.StatusBadRequest},
		"aliases in what is applied":                {line: "PATCH " + web + "?fieldManager=x", headers: []string{edit, "Content-Type: application/apply-patch+yaml"}, body: aliases(), want: http.StatusBadRequest},
		"maps a hundred thousand deep":              {line: "POST " + networks, headers: []string{edit, jsonBody}, body: deep(`{"spec":`, "1", "}"), want: http.StatusBadRequest},
		"lists a hundred thousand deep":             {line: "POST " + networks, headers: []string{edit, jsonBody}, body: deep("[", "", "]"), want: http.StatusBadRequest},
		"YAML a hundred thousand deep":              {line: "POST " + networks, headers: []string{edit, yamlBody}, body: deep("[", "", "]"), want: http.StatusBadRequest},
		"a patch a hundred thousand deep":           {line: "PATCH " + web, headers: []string{edit, "Content-Type: application/merge-patch+json"}, body: deep(`{"spec":`, "1", "}"), want: http.StatusBadRequest},
		"a body of four megabytes":                  {line: "POST " + networks, headers: []string{edit, jsonBody}, body: strings.Replace(valid, "{", `{"x":"`+strings.Repeat("a", 4<<20)+`",`, 1), want: http.StatusRequestEntityTooLarge},
		"a body that unpacks to a hundred million":  {line: "POST " + networks, headers: []string{edit, jsonBody, "Content-Encoding: gzip"}, body: zeros(t, 100_000_000), want: http.StatusBadRequest},
		"a patch of twenty thousand operations":     {line: "PATCH " + web, headers: []string{edit, "Content-Type: application/json-patch+json"}, body: "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"Network"},`, 20_000) + `{"op":"test","path":"/kind","value":"Network"}]`, want: http.StatusRequestEntityTooLarge},
		"a patch that doubles what is there":        {line: "PATCH " + web, headers: []string{edit, "Content-Type: application/json-patch+json"}, body: doubling(), want: http.StatusUnprocessableEntity},
		"protobuf that says it holds two gigabytes": {line: "POST " + networks, headers: []string{edit, "Content-Type: application/vnd.kubernetes.protobuf"}, body: "k8s\x00\x0a\xff\xff\xff\xff\x07", want: http.StatusBadRequest},
		"a type of body that nobody knows":          {line: "POST " + networks, headers: []string{edit, "Content-Type: application/java-serialized-object"}, body: valid, want: http.StatusUnsupportedMediaType},
		"a header of two megabytes":                 {line: "GET " + networks, headers: []string{view, "X-Padding: " + strings.Repeat("a", 2<<20)}, want: http.StatusRequestHeaderFieldsTooLarge},
		"a URL of two megabytes":                    {line: "GET " + networks + "?labelSelector=" + strings.Repeat("a", 2<<20), headers: []string{view}, want: http.StatusRequestHeaderFieldsTooLarge},
		"a hundred thousand headers":                {line: "GET " + networks, headers: slices.Repeat([]string{"X-Padding: " + strings.Repeat("a", 20)}, 100_000), want: http.StatusRequestHeaderFieldsTooLarge},
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			if got, body := attack.send(t, r.port); got != attack.want {
				t.Errorf("got %d, want %d: %s", got, attack.want, body)
			}
		})
	}
	t.Logf("%d attacks were refused", len(attacks))
	if diff := cmp.Diff(before, c.allNetworks(t)); diff != "" {
		t.Errorf("the attacks changed (-before +after):\n%s", diff)
	}
	if !ready(t.Context(), r.port) {
		t.Error("after the attacks the server is not ready")
	}
}

// send returns status and the beginning of the body.
func (a attack) send(t *testing.T, port int) (status int, body string) {
	t.Helper()
	// Who attacks does not care whom.
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}
	if a.as != nil {
		// Whether or not its CA is one that the server asks for.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.as, nil }
	}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: exitDeadline}, Config: config}
	conn, err := dialer.DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(exitDeadline)); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s HTTP/1.1\r\nHost: network-apiserver\r\n", a.line)
	has := func(name string) bool {
		return slices.ContainsFunc(a.headers, func(header string) bool { return strings.HasPrefix(header, name) })
	}
	if !has("Connection:") {
		text.WriteString("Connection: close\r\n")
	}
	if a.body != "" && !has("Content-Length:") && !has("Transfer-Encoding:") {
		fmt.Fprintf(&text, "Content-Length: %d\r\n", len(a.body))
	}
	for _, header := range a.headers {
		text.WriteString(header + "\r\n")
	}
	text.WriteString("\r\n" + a.body)
	method, _, _ := strings.Cut(a.line, " ")
	// Who is refused early does not read all.
	go func() { _, _ = io.WriteString(conn, text.String()) }()
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer response.Body.Close()
	start, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
	return response.StatusCode, string(start)
}

func (c *cluster) allNetworks(t *testing.T) []samplecrdv1.Network {
	t.Helper()
	list, err := c.networks.SamplecrdV1().Networks(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// aliases is YAML in which each line stands for nine of the one before.
func aliases() string {
	text := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'l'; c++ {
		text += fmt.Sprintf("%[1]c: &%[1]c [%[2]s]\n", c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	return text
}

func deep(open, middle, closing string) string {
	return strings.Repeat(open, 100_000) + middle + strings.Repeat(closing, 100_000)
}

// zeros are packed.
func zeros(t testing.TB, size int) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

// doubling is a JSON patch whose each operation copies all into itself.
func doubling() string {
	operations := []string{`{"op":"add","path":"/metadata/annotations","value":{"a":{"x":"x"}}}`}
	for i := range 60 {
		operations = append(operations, fmt.Sprintf(`{"op":"copy","from":"/metadata/annotations","path":"/metadata/annotations/c%d"}`, i))
	}
	return "[" + strings.Join(operations, ",") + "]"
}
