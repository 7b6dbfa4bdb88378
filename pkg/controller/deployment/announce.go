package deployment

import (
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
)

// occasion is what an Event of a Deployment is about.
type occasion struct{ reason, action string }

var (
	networkCreated    = occasion{"NetworkCreated", "Create"}
	networkUpdated    = occasion{"NetworkUpdated", "Update"}
	networkDeleted    = occasion{"NetworkDeleted", "Delete"}
	networkExists     = occasion{"NetworkExists", "Create"}
	networkRefused    = occasion{"NetworkRefused", "Write"}
	poolExhausted     = occasion{"CIDRPoolExhausted", "Allocate"}
	invalidAnnotation = occasion{"InvalidNetworkAnnotation", "Read"}
)

// maxNote is the most bytes that an Event holds.
const maxNote = 1024

// announcer makes Events of changes only: a problem that stays is told once,
// however often it is met.
type announcer struct {
	recorder events.EventRecorder

	mu   sync.Mutex
	last map[cache.ObjectName]announcement
}

type announcement struct {
	uid types.UID
	occasion
	note string
}

func newAnnouncer(recorder events.EventRecorder) *announcer {
	return &announcer{recorder: recorder, last: map[cache.ObjectName]announcement{}}
}

func (a *announcer) warn(deployment *appsv1.Deployment, o occasion, note string) {
	a.announce(deployment, corev1.EventTypeWarning, o, note)
}

func (a *announcer) tell(deployment *appsv1.Deployment, o occasion, note string) {
	a.announce(deployment, corev1.EventTypeNormal, o, note)
}

func (a *announcer) announce(deployment *appsv1.Deployment, eventType string, o occasion, note string) {
	note = strings.ToValidUTF8(note[:min(len(note), maxNote)], "")
	name, now := cache.MetaObjectToName(deployment), announcement{deployment.UID, o, note}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last[name] == now {
		return
	}
	a.last[name] = now
	a.recorder.Eventf(deployment, nil, eventType, o.reason, o.action, "%s", note)
}

// forget has the next Event of that name told whatever it is.
func (a *announcer) forget(name cache.ObjectName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.last, name)
}
