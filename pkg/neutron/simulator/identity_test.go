package simulator

import (
	"testing"
	"time"
)

func TestIdentify(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		token   string
		want    identity
		wantErr bool
	}{
		"no token is the administrator":      {token: "", want: identity{"fake_project_id", true}},
		"a member is of its project":         {token: "it:u:p:member", want: identity{"p", false}},
		"admin is a role":                    {token: "it:u:p:reader,admin", want: identity{"p", true}},
		"a token is good before it expires":  {token: "it:u:p:member:1001", want: identity{"p", false}},
		"a token is not good when it has":    {token: "it:u:p:member:1000", wantErr: true},
		"an expiry is a number":              {token: "it:u:p:member:", wantErr: true},
		"a token has a project":              {token: "it:u::member", wantErr: true},
		"a token has a role":                 {token: "it:u:p", wantErr: true},
		"a token has no more than an expiry": {token: "it:u:p:member:1001:x", wantErr: true},
		"another word is no token":           {token: "bad", wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := identify(tc.token, now)
			if (err != nil) != tc.wantErr || got != tc.want {
				t.Errorf("identify = %+v, %v; want %+v, error %t", got, err, tc.want, tc.wantErr)
			}
		})
	}
}
