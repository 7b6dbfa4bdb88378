package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestDraining(t *testing.T) {
	for name, tc := range map[string]struct{ http2, ending, wantClose bool }{
		"serving":                  {},
		"about to end":             {ending: true, wantClose: true},
		"serving, HTTP/2":          {http2: true},
		"about to end, and HTTP/2": {http2: true, ending: true},
	} {
		t.Run(name, func(t *testing.T) {
			ending := make(chan struct{})
			if tc.ending {
				close(ending)
			}
			server := httptest.NewUnstartedServer(withDraining(http.NotFoundHandler(), ending))
			server.EnableHTTP2 = tc.http2
			server.StartTLS()
			t.Cleanup(server.Close)
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := server.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusNotFound || response.Close != tc.wantClose {
				t.Errorf("answered %s, and closed %t, want %t", response.Status, response.Close, tc.wantClose)
			}
		})
	}
}
