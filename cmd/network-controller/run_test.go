package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newAPI is a cluster of which no more is seen than that it is one.
func newAPI(t *testing.T) (url string) {
	t.Helper()
	version := metav1.GroupVersionForDiscovery{GroupVersion: coordinationv1.SchemeGroupVersion.String(), Version: "v1"}
	groups := metav1.APIGroupList{Groups: []metav1.APIGroup{{
		Name: coordinationv1.GroupName, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(groups); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestLeaderElectionThatCannotBeEndsTheProcess(t *testing.T) {
	ended := make(chan error, 1)
	args := strings.Fields("-os-cloud demo -cluster-id c1 -leader-elect-lease-duration 5s -leader-elect-renew-deadline 10s -master " + newAPI(t))
	go func() { ended <- run(t.Context(), args, io.Discard, io.Discard) }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "setting up leader election") {
			t.Errorf("error %v, want one of leader election", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it runs on, and does nothing")
	}
}
