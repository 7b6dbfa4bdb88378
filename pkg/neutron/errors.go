package neutron

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gophercloud/gophercloud/v2"
)

// Class is what a caller can do about an error.
type Class string

const (
	// NotFound: Neutron knows no such object, or it belongs to another project.
	NotFound Class = "NotFound"
	// Invalid: Neutron refuses the attributes; a person must change them.
	Invalid Class = "Invalid"
	// Forbidden: the policy of the cloud does not allow it.
	Forbidden Class = "Forbidden"
	// Unauthorized: the token is wrong or has expired.
	Unauthorized Class = "Unauthorized"
	// QuotaExceeded: the project may not have more; works once something goes.
	QuotaExceeded Class = "QuotaExceeded"
	// InUse: works once the ports that hold the object are gone.
	InUse Class = "InUse"
	// Conflict: the object has another revision than the one sent; read again.
	Conflict Class = "Conflict"
	// Transient: everything else. Try again; a create may have been done.
	Transient Class = "Transient"
)

// Error is any failure of a call. Its text, which names the act and the object,
// holds neither the token nor anything that differs between two tries, so that
// it may go into a status.
type Error struct {
	Class Class
	// Type is NeutronError.type, empty if the answer is not a NeutronError.
	Type string
	// Message is NeutronError.message, with what varies taken out, or the
	// reason why there is none.
	Message string
	// Status is the HTTP status code, 0 if there was no answer.
	Status int
	// RetryAfter is how long Neutron asks to wait, at most an hour; 0: not said.
	RetryAfter time.Duration

	act   string
	cause error
}

func (e *Error) Error() string { return e.act + ": " + e.Message }

// Unwrap returns the cause if the request or its answer was lost on the way;
// its text may differ between two tries.
func (e *Error) Unwrap() error { return e.cause }

// ClassOf returns the class of err: "" for nil, and Transient for an error
// that is not of this package, since no final decision can rest on it.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Transient
}

// classes holds the types whose status says too little: 409 is used for what
// waiting solves and for what only a person can.
var classes = map[string]Class{
	"OverQuota": QuotaExceeded,

	"ExternalNetworkInUse":      InUse,
	"GatewayIpInUse":            InUse,
	"InvalidSharedSetting":      InUse,
	"IpAddressAlreadyAllocated": InUse,
	"IpAddressInUse":            InUse,
	"NetworkInUse":              InUse,
	"SubnetInUse":               InUse,

	"GatewayConflictWithAllocationPools": Invalid,
	"IpamValueInvalid":                   Invalid,
	"OverlappingAllocationPools":         Invalid,
	// The segment asked for belongs to another network, which has no reason to
	// go: waiting does not help, another segment does.
	"FlatNetworkInUse": Invalid,
	"TunnelIdInUse":    Invalid,
	"VlanIdInUse":      Invalid,

	"RevisionNumberConstraintFailed": Conflict,
}

// stableMessages replaces messages that count or list what changes meanwhile.
var stableMessages = map[string]string{
	"NetworkInUse":                   "one or more ports are still in use on the network",
	"RevisionNumberConstraintFailed": "changed since it was read",
}

var requestID = regexp.MustCompile(`\s*\(?\b(?i:request[- ]id:? *)?req-[0-9a-f-]{36}\)?`)

// maxMessage bounds a message in bytes. Neutron repeats what it was sent.
const maxMessage = 1024

// call is what an error text names: an act, and the object it is done to.
type call struct {
	act  string
	kind string // Network or Subnet, of which NotFound may be said; else empty
	id   string // empty if there is no such object yet
}

func (w call) String() string { return strings.TrimSpace(w.act + " " + w.id) }

// plainID is what Neutron's ID column holds: a UUID, of at most 36 characters.
var plainID = regexp.MustCompile(`^[0-9A-Za-z-]{1,36}$`)

// checkID refuses an ID that would change the URL, into which gophercloud puts
// it unescaped. Invalid and not NotFound: on a broken ID nobody may conclude
// that the network is gone, and so forget it or make it again.
func (w call) checkID() error {
	if plainID.MatchString(w.id) {
		return nil
	}
	return &Error{Class: Invalid, Message: fmt.Sprintf("%.64q is not an ID of Neutron", w.id), act: w.act}
}

// failure is classed as an error; nil for nil.
func (c *Client) failure(what call, err error) error {
	if err == nil {
		return nil
	}
	e := c.classed(what, err)
	if e.Class == Unauthorized {
		c.refused.Store(true)
	}
	return e
}

// classed classes err by NeutronError.type.
func (c *Client) classed(what call, err error) *Error {
	if e, ok := errors.AsType[*gophercloud.ErrUnableToReauthenticate](err); ok {
		// Keystone's refusal counts, not the 401 that came before.
		return c.authFailure(call{act: what.String() + ": authenticate again"}, e.ErrReauth)
	}
	answer, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err)
	if !ok {
		return &Error{Class: Transient, Message: reason(err), act: what.String(), cause: err}
	}
	e := &Error{
		Class:      Transient,
		Message:    strings.TrimSpace(fmt.Sprintf("HTTP %d %s", answer.Actual, http.StatusText(answer.Actual))),
		Status:     answer.Actual,
		RetryAfter: retryAfter(answer.ResponseHeader),
		act:        what.String(),
	}
	var body struct {
		NeutronError struct{ Type, Message string }
	}
	if json.Unmarshal(answer.Body, &body) == nil && body.NeutronError.Type != "" {
		e.Type = c.redact(body.NeutronError.Type)
		e.Message = c.stable(body.NeutronError.Type, body.NeutronError.Message)
	}
	e.Class = classify(what, body.NeutronError.Type, body.NeutronError.Message, e.Status)
	return e
}

// classify trusts a status code only where a NeutronError came with it: a proxy
// in front of Neutron answers 400, 403 and 404 too, and a wrong URL must never
// read as "the network is gone".
func classify(what call, errorType, message string, status int) Class {
	if status == http.StatusUnauthorized {
		return Unauthorized // by Keystone's middleware, never a NeutronError
	}
	if class, ok := classes[errorType]; ok {
		return class
	}
	switch {
	case errorType == "":
		return Transient
	case status == http.StatusNotFound && what.kind != "" &&
		errorType == what.kind+"NotFound" && strings.Contains(message, what.id):
		return NotFound
	case status == http.StatusBadRequest:
		return Invalid
	case status == http.StatusForbidden:
		return Forbidden
	}
	return Transient
}

func (c *Client) stable(errorType, message string) string {
	if s, ok := stableMessages[errorType]; ok {
		return s
	}
	message = requestID.ReplaceAllString(message, "")
	message = strings.TrimSpace(c.redact(message))
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	return message
}

// redact guards against a server or proxy that repeats the token, or what got it.
func (c *Client) redact(text string) string {
	if token := c.service.Token(); token != "" {
		text = strings.ReplaceAll(text, token, "[token]")
	}
	for _, secret := range c.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}
	return text
}

// reason says why there is no usable answer. The texts of package net hold the
// local port, and those of crypto/x509 the time, which would differ each time.
func reason(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, errNotEncrypted):
		return errNotEncrypted.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "answer ended too early"
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return "no answer in time"
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		return e.Error()
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return "cannot resolve " + e.Name
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return "certificate has expired or is not yet valid"
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return e.Error()
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return "answer is too large"
	}
	return "no usable answer"
}

// retryAfter reads Retry-After, seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	seconds, err := strconv.Atoi(value)
	wait := time.Duration(min(seconds, 3600)) * time.Second
	if err != nil {
		date, err := http.ParseTime(value)
		if err != nil {
			return 0
		}
		wait = time.Until(date)
	}
	return min(max(wait, 0), time.Hour)
}
