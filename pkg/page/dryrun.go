package page

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	samplecrdv1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v1"
	samplecrdv2alpha1 "github.com/samplecrd/network-apiserver/pkg/apis/samplecrd/v2alpha1"
)

const (
	// maxBody bounds what is sent on, in bytes.
	maxBody = 64 << 10
	// manager is that of kubectl apply --server-side: an apply is refused here if
	// the command that the page shows for the real thing would be, and only then.
	manager = "kubectl"
)

// sent is the answer to a dry run.
type sent struct {
	// Trace is the audit ID of the request, and the name of its trace.
	Trace   string `json:"trace"`
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

// dryRun sends a Network, byte for byte as it came, and names the trace that
// becomes of it. The query's verb is create, update or apply.
func (p *Page) dryRun(w http.ResponseWriter, r *http.Request) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && media != "application/yaml" {
		answer(w, http.StatusUnsupportedMediaType, problem{Message: "the body must be application/yaml or application/json"})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		code := http.StatusBadRequest
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			code = http.StatusRequestEntityTooLarge
		}
		answer(w, code, problem{Message: err.Error()})
		return
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(body)))
	first, err := documents.Read()
	var object metav1.PartialObjectMetadata
	if err == nil || errors.Is(err, io.EOF) { // nothing is no Network
		err = yaml.Unmarshal(first, &object)
	}
	if err != nil {
		answer(w, http.StatusBadRequest, problem{Message: err.Error()})
		return
	}
	if second, _ := documents.Read(); len(bytes.TrimSpace(second)) > 0 {
		answer(w, http.StatusBadRequest, problem{Message: "it must be one Network: a server takes one at a time, kubectl sends one after the other"})
		return
	}
	request, wrong := p.request(r.URL.Query().Get("verb"), media, &object)
	if wrong != nil {
		answer(w, http.StatusBadRequest, wrong)
		return
	}
	id := string(uuid.NewUUID())
	var code int
	err = request.
		Param("dryRun", metav1.DryRunAll).
		Param("fieldManager", manager).
		Param("fieldValidation", metav1.FieldValidationStrict). // as kubectl asks for
		SetHeader("Accept", "application/json").
		SetHeader(audit.HeaderAuditID, id).
		Body(body).
		Do(r.Context()).StatusCode(&code).Error()
	if code == 0 {
		answerError(w, err)
		return
	}
	result := sent{Trace: id, Code: code}
	if err != nil {
		result.Message = err.Error()
	}
	answer(w, http.StatusOK, result)
}

// request addresses what is to be sent.
func (p *Page) request(verb, media string, object *metav1.PartialObjectMetadata) (*rest.Request, *problem) {
	var client rest.Interface
	switch object.APIVersion {
	case samplecrdv1.SchemeGroupVersion.String():
		client = p.clients.SamplecrdV1().RESTClient()
	case samplecrdv2alpha1.SchemeGroupVersion.String():
		client = p.clients.SamplecrdV2alpha1().RESTClient()
	}
	if client == nil || object.Kind != "Network" {
		return nil, &problem{Message: "it must be a Network of " + samplecrdv1.SchemeGroupVersion.String() + " or " + samplecrdv2alpha1.SchemeGroupVersion.String()}
	}
	if object.Namespace == "" {
		object.Namespace = metav1.NamespaceDefault
	}
	for _, segment := range []string{object.Namespace, object.Name} {
		if wrong := content.IsPathSegmentName(segment); len(wrong) > 0 {
			return nil, &problem{Message: fmt.Sprintf("%q %s", segment, strings.Join(wrong, ", "))}
		}
	}
	var request *rest.Request
	switch verb {
	case "create":
		return client.Post().Namespace(object.Namespace).Resource("networks").SetHeader("Content-Type", media), nil
	case "update":
		request = client.Put().SetHeader("Content-Type", media)
	case "apply":
		// JSON is YAML.
		request = client.Patch(types.ApplyYAMLPatchType)
	default:
		return nil, &problem{Message: "verb must be create, update or apply"}
	}
	if object.Name == "" {
		return nil, &problem{Message: "metadata.name is in the URL of an update, and must be given"}
	}
	return request.Namespace(object.Namespace).Resource("networks").Name(object.Name), nil
}
