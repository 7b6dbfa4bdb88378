package simulator

import (
	"time"

	"github.com/google/uuid"
)

// object is what networks, subnets and ports have in common.
type object struct {
	ID, Name, Project, Description string
	Tags                           []string // sorted
	CreatedAt, UpdatedAt           time.Time
	Revision                       int
}

func newObject(v values, revision int) object {
	now := time.Now()
	return object{
		ID:          uuid.NewString(),
		Name:        value(v, "name", ""),
		Project:     value(v, "project_id", ""),
		Description: value(v, "description", ""),
		CreatedAt:   now,
		UpdatedAt:   now,
		Revision:    revision,
	}
}

// touch counts a change.
func (o *object) touch() {
	o.Revision++
	o.UpdatedAt = time.Now()
}

func (o *object) update(v values) {
	o.Name = value(v, "name", o.Name)
	o.Description = value(v, "description", o.Description)
	o.touch()
}

func (o *object) view() view {
	return view{
		"id":              o.ID,
		"name":            o.Name,
		"tenant_id":       o.Project,
		"project_id":      o.Project,
		"description":     o.Description,
		"tags":            orEmpty(o.Tags),
		"created_at":      timestamp(o.CreatedAt),
		"updated_at":      timestamp(o.UpdatedAt),
		"revision_number": o.Revision,
	}
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// orEmpty makes JSON show [] and not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Attributes of every resource. Neutron puts the first two before and the others after those of the resource itself.
var (
	idAttribute   = attribute{name: "id", flags: filters | sorts}
	nameAttribute = attribute{name: "name", flags: onPost | onPut | filters | sorts, validate: stringUpTo(maxText)}
	tenant        = attribute{name: "tenant_id", flags: onPost | filters | sorts, validate: stringUpTo(maxText)}
	standard      = []attribute{
		{name: "description", flags: onPost | onPut | filters | sorts, validate: stringUpTo(maxText)},
		{name: "created_at", flags: filters | sorts},
		{name: "updated_at", flags: filters | sorts},
		{name: "revision_number", flags: filters | sorts, convert: integer},
		{name: "project_id", flags: onPost | filters | sorts, validate: stringUpTo(maxText)},
	}
)
