package network

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCallsOfACreate counts what a Network with one subnet costs Neutron.
func TestCallsOfACreate(t *testing.T) {
	tests := map[string]struct {
		crash  fault
		effect int // that the process crashes with, 0: none. The first is the intent
		want   []string
	}{
		"a first try": {want: []string{"POST networks", "POST subnets"}},
		"a second try, where no answer came to the POST of the network": {
			crash: faults["a crash after"], effect: 2,
			want: []string{"GET networks", "GET subnets", "POST subnets"},
		},
		"a second try, where the id of the network was not written down": {
			crash: faults["a crash before"], effect: 3,
			want: []string{"GET networks", "GET subnets", "POST subnets"},
		},
		"a second try, where no answer came to the POST of the subnet": {
			crash: faults["a crash after"], effect: 4,
			want: []string{"GET networks", "GET subnets"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(newNetwork())
			if tc.effect > 0 {
				w.arm(tc.effect, tc.crash)
				if err := w.pass(); err == nil || !w.disarm() {
					t.Fatalf("there was no crash, and the pass ended with %v", err)
				}
			}
			requests, _ := w.traffic(w.settle)
			if diff := cmp.Diff(tc.want, requests); diff != "" {
				t.Errorf("requests to Neutron (-want +got):\n%s", diff)
			}
			w.network()
			t.Logf("%d calls: %q", len(requests), requests)
		})
	}
}
