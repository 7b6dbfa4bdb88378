package network

import "testing"

func TestMarkerInADescription(t *testing.T) {
	const other = "samplecrd.k8s.io/cluster-2/another"
	tests := map[string]struct {
		description string
		wantMarker  string
		wantMarked  bool
	}{
		"nothing":                     {},
		"a text":                      {description: "the network of the lab"},
		"the marker alone":            {description: testMarker, wantMarker: testMarker, wantMarked: true},
		"the marker after a text":     {description: "of old [" + testMarker + "]", wantMarker: testMarker, wantMarked: true},
		"the marker after no text":    {description: " [" + testMarker + "]", wantMarker: testMarker, wantMarked: true},
		"the marker in another case":  {description: "samplecrd.k8s.io/CLUSTER-1/" + string(testUID), wantMarker: "samplecrd.k8s.io/CLUSTER-1/" + string(testUID)},
		"the marker before a text":    {description: testMarker + " is ours"},
		"another marker":              {description: other, wantMarker: other},
		"another marker after a text": {description: "of old [" + other + "]", wantMarker: other},
		"a part of a marker":          {description: "samplecrd.k8s.io/cluster-1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := markerIn(tc.description); got != tc.wantMarker {
				t.Errorf("marker in %q is %q, want %q", tc.description, got, tc.wantMarker)
			}
			if got := marked(tc.description, testMarker); got != tc.wantMarked {
				t.Errorf("%q is marked: %t, want %t", tc.description, got, tc.wantMarked)
			}
		})
	}
}

func FuzzMark(f *testing.F) {
	for _, text := range []string{"", " ", "of old", "[x]", testMarker, " [" + testMarker + "]", "\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		marks := mark(text, testMarker, "")
		if !marked(marks, testMarker) || markerIn(marks) != testMarker {
			t.Errorf("%q is not marked", marks)
		}
		if got := unmark(marks, testMarker); got != text {
			t.Errorf("marking and unmarking %q leaves %q", text, got)
		}
	})
}
