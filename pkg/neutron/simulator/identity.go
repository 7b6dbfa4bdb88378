package simulator

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// identity is who asks.
type identity struct {
	project string
	admin   bool
}

// identify reads a token of the form it:USER:PROJECT:ROLE[,ROLE][:EXPIRES_EPOCH]. No token is the administrator.
func identify(token string, now time.Time) (identity, error) {
	if token == "" {
		return identity{project: "fake_project_id", admin: true}, nil
	}
	parts := strings.Split(token, ":")
	if parts[0] != "it" || len(parts) < 4 || len(parts) > 5 || parts[2] == "" {
		return identity{}, errUnauthorized
	}
	if len(parts) == 5 {
		expires, err := strconv.ParseInt(parts[4], 10, 64)
		if err != nil || !now.Before(time.Unix(expires, 0)) {
			return identity{}, errUnauthorized
		}
	}
	return identity{project: parts[2], admin: slices.Contains(strings.Split(parts[3], ","), "admin")}, nil
}

// owns says whether a caller acts for the project: its members do, and the administrator does for all.
func (i identity) owns(project string) bool { return i.admin || i.project == project }
