package simulator

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	region          = "RegionOne"
	defaultLifetime = time.Hour

	keystoneTime = "2006-01-02T15:04:05.000000Z"
)

// serveKeystone answers for /identity: as much of Keystone as it takes to get a token.
func (s *Simulator) serveKeystone(w http.ResponseWriter, r *http.Request, path []string) {
	switch {
	case r.Method == http.MethodGet && slices.Equal(path, []string{"v3"}):
		write(w, http.StatusOK, map[string]any{"version": map[string]any{
			"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
			"links":       []any{map[string]any{"rel": "self", "href": authURL(r) + "/"}},
			"media-types": []any{map[string]any{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}},
		}})
	case r.Method == http.MethodPost && slices.Equal(path, []string{"v3", "auth", "tokens"}):
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			body = nil
		}
		to, refused := authenticate(body)
		if refused != nil {
			challenge(w, r, refused)
			write(w, refused.status, refused.keystoneBody())
			return
		}
		issued := time.Now()
		// A token names whole seconds. Rounded down, one of a second could be over when it comes.
		expires := issued.Add(s.lifetime + time.Second - 1).Truncate(time.Second)
		w.Header().Set("X-Subject-Token", fmt.Sprintf("it:%s:%s:%s:%d", to.user, to.project, to.role(), expires.Unix()))
		write(w, http.StatusCreated, map[string]any{"token": to.token(r, issued, expires)})
	default:
		noPage(w)
	}
}

func authURL(r *http.Request) string { return origin(r) + "/identity/v3" }

// grant is whom a token is for. There are no users to look up: everybody whose password is his name may act for every project, and
// what has a name has it for an ID too.
type grant struct{ method, user, project string } // no project: for none

// role is admin or member; without a project there is none.
func (g grant) role() string {
	switch {
	case g.project == "":
		return ""
	case g.user == "admin":
		return "admin"
	}
	return "member"
}

func (g grant) token(r *http.Request, issued, expires time.Time) any {
	named := func(name string) map[string]any { return map[string]any{"id": name, "name": name} }
	inDefault := func(name string) map[string]any {
		object := named(name)
		object["domain"] = map[string]any{"id": "default", "name": "Default"}
		return object
	}
	user := inDefault(g.user)
	user["password_expires_at"] = nil
	audit := uuid.New()
	token := map[string]any{
		"methods":    []any{g.method},
		"user":       user,
		"audit_ids":  []any{base64.RawURLEncoding.EncodeToString(audit[:])},
		"issued_at":  issued.UTC().Format(keystoneTime),
		"expires_at": expires.UTC().Format(keystoneTime),
	}
	if g.project != "" {
		token["project"] = inDefault(g.project)
		token["is_domain"] = false
		token["roles"] = []any{named(g.role())}
		token["catalog"] = []any{service("identity", "keystone", authURL(r)), service("network", "neutron", origin(r))}
	}
	if g.method == "application_credential" {
		credential := named(g.user + ":" + g.project)
		credential["restricted"] = true
		token["application_credential"] = credential
	}
	return token
}

func service(kind, name, url string) any {
	endpoints := []any{}
	for _, access := range []string{"public", "internal", "admin"} {
		endpoints = append(endpoints, map[string]any{
			"id": name + "-" + access, "interface": access, "url": url, "region": region, "region_id": region,
		})
	}
	return map[string]any{"id": name, "name": name, "type": kind, "endpoints": endpoints}
}

// reference names a user or a project, by id or by name.
type reference struct {
	ID, Name string
	Password string
	Domain   *struct{} // any will do
}

// resolve returns what is named. field is where it stands in the request.
func (r *reference) resolve(field string) (string, *fault) {
	switch {
	case r.ID != "":
		return r.ID, nil
	case r.Name == "":
		return "", keystoneBad("Invalid input for field %s: id or name must be present.", field)
	case r.Domain == nil:
		return "", expecting("domain", field[strings.LastIndex(field, "/")+1:])
	}
	return r.Name, nil
}

// plainName is a name that can be part of a token.
var plainName = regexp.MustCompile(`^[!-9;-~]+$`)

func authenticate(body []byte) (grant, *fault) {
	var given struct {
		Auth *struct {
			Identity struct {
				Methods    []string
				Password   *struct{ User reference }
				Credential *struct{ ID, Secret string } `json:"application_credential"`
			}
			Scope json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &given); err != nil {
		return grant{}, expecting("valid JSON", "request body")
	}
	if given.Auth == nil {
		return grant{}, expecting("auth", "request body")
	}
	identity, scope := given.Auth.Identity, given.Auth.Scope
	switch method := strings.Join(identity.Methods, ","); method {
	case "password":
		if identity.Password == nil {
			return grant{}, expecting(method, "identity")
		}
		user, refused := identity.Password.User.resolve("identity/password/user")
		if refused != nil {
			return grant{}, refused
		}
		if !plainName.MatchString(user) || identity.Password.User.Password != user {
			return grant{}, errUnauthorized
		}
		project, refused := projectOf(scope)
		return grant{method, user, project}, refused
	case "application_credential":
		if identity.Credential == nil {
			return grant{}, expecting(method, "identity")
		}
		user, project, _ := strings.Cut(identity.Credential.ID, ":")
		switch {
		case !plainName.MatchString(user) || !plainName.MatchString(project):
			return grant{}, &fault{http.StatusNotFound, "Not Found", "Could not find Application Credential: " + identity.Credential.ID + "."}
		case identity.Credential.Secret != user:
			return grant{}, errUnauthorized
		case scope != nil:
			return grant{}, &fault{http.StatusUnauthorized, "Unauthorized", "Error authenticating with application credential: Application credentials cannot request a scope."}
		}
		return grant{method, user, project}, nil
	}
	return grant{}, &fault{http.StatusUnauthorized, "Unauthorized", "Attempted to authenticate with an unsupported method."}
}

// projectOf reads a scope. None is for no project.
func projectOf(scope json.RawMessage) (string, *fault) {
	if scope == nil || string(scope) == `"unscoped"` {
		return "", nil
	}
	var given struct {
		Project        *reference
		Domain, System any
	}
	err := json.Unmarshal(scope, &given)
	switch {
	case err == nil && given.Project != nil:
		project, refused := given.Project.resolve("scope/project")
		if refused == nil && !plainName.MatchString(project) {
			return "", errUnauthorized
		}
		return project, refused
	case err == nil && (given.Domain != nil || given.System != nil):
		return "", errUnauthorized // nobody has a role there
	}
	return "", expecting("system, project, domain, OS-TRUST:trust or unscoped", "scope")
}

func keystoneBad(format string, args ...any) *fault {
	return &fault{http.StatusBadRequest, "Bad Request", fmt.Sprintf(format, args...)}
}

func expecting(what, where string) *fault {
	return keystoneBad("Expecting to find %s in %s. The server could not comply with the request since it is either malformed or otherwise incorrect. The client is assumed to be in error.", what, where)
}
