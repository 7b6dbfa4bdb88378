package network

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"
)

// maxDescription is what Neutron's description holds, in characters.
const maxDescription = 255

// ownerMarker is the description, in Neutron, of what belongs to the Network
// of that UID. It is set in the POST itself, as a tag can't be: so nothing of
// ours is ever without it.
func ownerMarker(clusterID string, uid types.UID) string {
	return fmt.Sprintf("samplecrd.k8s.io/%s/%s", clusterID, uid)
}

var anyMarker = regexp.MustCompile(`(?:^|\[)(samplecrd\.k8s\.io/[^/\s\]]{1,63}/[^/\s\]]{1,63})(?:\]?$)`)

// markerIn returns the marker a description bears, ours or another's, or "".
func markerIn(description string) string {
	if m := anyMarker.FindStringSubmatch(description); m != nil {
		return m[1]
	}
	return ""
}

// marked tells whether the description bears the marker: alone, of what we
// made, or at its end, of what we took over.
func marked(description, marker string) bool {
	return description == marker || strings.HasSuffix(description, suffix(marker))
}

// mark appends the marker to the description of what is taken over, in the
// place of the marker of the owner it is taken over from, if there is one. What
// that owner had made is then as if we had.
func mark(description, marker, from string) string {
	if from != "" && description == from {
		return marker
	}
	if from != "" {
		description = unmark(description, from)
	}
	return description + suffix(marker)
}

// unmark is the reverse of mark, byte for byte.
func unmark(description, marker string) string {
	return strings.TrimSuffix(description, suffix(marker))
}

func suffix(marker string) string { return " [" + marker + "]" }

func tooLong(description string) bool {
	return utf8.RuneCountInString(description) > maxDescription
}
