package simulator

import (
	"fmt"
	"net/http"
)

// fault is an answer other than success.
type fault struct {
	status  int
	kind    string // the type of the NeutronError: the exception class in Neutron
	message string
}

func (f *fault) Error() string { return f.message }

// body is what Neutron sends. The 401 comes from its authentication filter, which speaks as Keystone.
func (f *fault) body() any {
	if f.status == http.StatusUnauthorized {
		return f.keystoneBody()
	}
	return map[string]any{"NeutronError": map[string]any{"type": f.kind, "message": f.message, "detail": ""}}
}

func (f *fault) keystoneBody() any {
	return map[string]any{"error": map[string]any{"code": f.status, "title": f.kind, "message": f.message}}
}

var (
	errUnauthorized  = &fault{http.StatusUnauthorized, "Unauthorized", "The request you have made requires authentication."}
	errNoRoute       = &fault{http.StatusNotFound, "HTTPNotFound", "The resource could not be found."}
	errNotSupported  = &fault{http.StatusNotFound, "HTTPNotFound", "not supported"}
	errMethod        = &fault{http.StatusMethodNotAllowed, "HTTPMethodNotAllowed", "The server could not comply with the request since it is either malformed or otherwise incorrect."}
	errAdminRequired = &fault{http.StatusForbidden, "AdminRequired", "User does not have admin privileges: Only admin is authorized to access quotas for another project."}
	errTooLarge      = &fault{http.StatusRequestEntityTooLarge, "HTTPRequestEntityTooLarge", "Request is too large."}
	errInternal      = &fault{http.StatusInternalServerError, "HTTPInternalServerError", "Request Failed: internal server error while processing your request."}
	errNoSegment     = &fault{http.StatusServiceUnavailable, "NoNetworkAvailable", "Unable to create the network. No tenant network is available for allocation."}
	errInvalidBody   = badRequest("Body contains invalid data")
	errMalformed     = &fault{http.StatusBadRequest, "MalformedRequestBody", "Malformed request body: Cannot understand JSON."}
)

func badRequest(format string, args ...any) *fault {
	return &fault{http.StatusBadRequest, "HTTPBadRequest", fmt.Sprintf(format, args...)}
}

func invalidInput(format string, args ...any) *fault {
	return &fault{http.StatusBadRequest, "InvalidInput", "Invalid input for operation: " + fmt.Sprintf(format, args...) + "."}
}

// badPart is Neutron's BadRequest, which names the part of the request that is wrong.
func badPart(part, format string, args ...any) *fault {
	return &fault{http.StatusBadRequest, "BadRequest", "Bad " + part + " request: " + fmt.Sprintf(format, args...) + "."}
}

func notFound(title, id string) *fault {
	message := fmt.Sprintf("%s %s could not be found", title, id)
	if title != routers.title {
		message += "."
	}
	return &fault{http.StatusNotFound, title + "NotFound", message}
}

func conflict(kind, format string, args ...any) *fault {
	return &fault{http.StatusConflict, kind, fmt.Sprintf(format, args...)}
}

func forbidden(rule string) *fault {
	return &fault{http.StatusForbidden, "PolicyNotAuthorized", rule + " is disallowed by policy"}
}
