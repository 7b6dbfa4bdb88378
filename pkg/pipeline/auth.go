package pipeline

import (
	"context"
	"net/http"
	"slices"
	"strings"

	genericauthenticator "k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	genericauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
)

func newUser(u user.Info) *User {
	return &User{Name: u.GetName(), Groups: slices.Clone(u.GetGroups())}
}

// impersonated returns the user that counts: the one who is authorized is another
// than the one who was recognized.
func impersonated(recognized, counts *User) *User {
	switch {
	case recognized == nil:
	case recognized.Name != counts.Name:
		counts.ImpersonatedBy = recognized.Name
	default:
		counts.ImpersonatedBy = recognized.ImpersonatedBy // asked twice
	}
	return counts
}

// authenticator notes who was recognized, and by what.
type authenticator struct{ genericauthenticator.Request }

func (a authenticator) AuthenticateRequest(req *http.Request) (*genericauthenticator.Response, bool, error) {
	t := from(req.Context())
	if t == nil {
		return a.Request.AuthenticateRequest(req)
	}
	shown := credentials(req) // those that are good are taken out of the headers
	response, ok, err := a.Request.AuthenticateRequest(req)
	filter := t.lastGoingOn()
	filter.detail("credentials", strings.Join(shown, ", "))
	if err == nil && ok {
		u := newUser(response.User)
		t.mu.Lock()
		t.user = u
		t.mu.Unlock()
		filter.detail("user", u.Name)
		filter.detail("groups", strings.Join(u.Groups, ", "))
	}
	return response, ok, err
}

// webSocketToken begins a subprotocol that is a token: a browser can't set the
// header for one.
const webSocketToken = "base64url.bearer.authorization.k8s.io." //nolint:gosec // none is in it

// credentials tells what a request shows of who sends it, and nothing of what
// is in it.
func credentials(req *http.Request) (kinds []string) {
	certificate := req.TLS != nil && len(req.TLS.PeerCertificates) > 0
	switch {
	case certificate && req.Header.Get("X-Remote-User") != "":
		kinds = append(kinds, "headers of a front proxy, with its certificate")
	case certificate:
		kinds = append(kinds, "client certificate")
	}
	scheme, _, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") || strings.Contains(strings.Join(req.Header["Sec-Websocket-Protocol"], ","), webSocketToken) {
		kinds = append(kinds, "bearer token")
	}
	if len(kinds) == 0 {
		kinds = append(kinds, "none")
	}
	return kinds
}

// authorizer notes each question and its answer, whoever asks.
type authorizer struct{ genericauthorizer.Authorizer }

func (a authorizer) Authorize(ctx context.Context, attributes genericauthorizer.Attributes) (genericauthorizer.Decision, string, error) {
	decision, reason, err := a.Authorizer.Authorize(ctx, attributes)
	if t := from(ctx); t != nil {
		noteDecision(t, attributes, decision, reason, err)
	}
	return decision, reason, err
}

func (a authorizer) ConditionsAwareAuthorize(ctx context.Context, attributes genericauthorizer.Attributes) genericauthorizer.ConditionsAwareDecision {
	decision := a.Authorizer.ConditionsAwareAuthorize(ctx, attributes)
	if t := from(ctx); t != nil {
		// One that depends on the object is neither of these yet.
		plain := genericauthorizer.DecisionNoOpinion
		switch {
		case decision.IsAllow():
			plain = genericauthorizer.DecisionAllow
		case decision.IsDeny():
			plain = genericauthorizer.DecisionDeny
		}
		noteDecision(t, attributes, plain, decision.Reason(), decision.Error())
	}
	return decision
}

func noteDecision(t *Trace, attributes genericauthorizer.Attributes, decision genericauthorizer.Decision, reason string, err error) {
	words := map[genericauthorizer.Decision]string{
		genericauthorizer.DecisionAllow:     "allowed",
		genericauthorizer.DecisionDeny:      "denied",
		genericauthorizer.DecisionNoOpinion: "not allowed",
	}
	text := words[decision]
	if reason != "" {
		text += ": " + reason
	}
	if err != nil {
		text += " (" + err.Error() + ")"
	}
	question := attributes.GetVerb() + " " + attributes.GetResource()
	if attributes.GetSubresource() != "" {
		question += "/" + attributes.GetSubresource()
	}
	// What stands beside an impersonated name may be a token.
	if attributes.GetName() != "" && attributes.GetResource() != "userextras" {
		question += " " + attributes.GetName()
	}
	if attributes.GetNamespace() != "" {
		question += " in " + attributes.GetNamespace()
	}
	if u := attributes.GetUser(); u != nil {
		question += " by " + u.GetName()
	}
	if asks := t.lastGoingOn(); asks != nil {
		asks.detail(question, text) // the filter, or a plugin
		if u := attributes.GetUser(); u != nil && asks.stage.Name == Authorization {
			// Who is refused comes no further.
			t.mu.Lock()
			t.user = impersonated(t.user, newUser(u))
			t.mu.Unlock()
		}
		return
	}
	// The library asks again: may who applies create what is not there?
	s := t.step(Authorization, "")
	s.detail(question, text)
	if decision == genericauthorizer.DecisionAllow {
		s.end(Passed, "")
	} else {
		s.end(Refused, text)
	}
}
