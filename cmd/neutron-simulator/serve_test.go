package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	state := filepath.Join(t.TempDir(), "neutron.db")
	url, stop := start(t, "--state", state)
	post, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v2.0/networks", strings.NewReader(`{"network": {"name": "kept"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := do(t, post); status != http.StatusCreated {
		t.Fatalf("POST answered %d, want 201", status)
	}
	stop()

	url, stop = start(t, "--state", state)
	defer stop()
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v2.0/networks?fields=name", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, body := do(t, get); body != `{"networks":[{"name":"kept"}]}` {
		t.Errorf("after a restart the networks are %s", body)
	}
}

func TestRunRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"an unknown flag":         {"--nope"},
		"an argument":             {"extra"},
		"a bad address":           {"--listen", "127.0.0.1:no"},
		"a lifetime that is over": {"--listen", "127.0.0.1:0", "--token-lifetime", "-1s"},
		"a state in no folder":    {"--listen", "127.0.0.1:0", "--state", "/nonexistent/neutron.db"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), args, io.Discard); err == nil {
				t.Error("run returned no error")
			}
		})
	}
}

func TestRunFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		want  int
	}{
		"not unless asked for": {nil, http.StatusNotFound},
		"asked for":            {[]string{"--faults"}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			url, stop := start(t, tc.flags...)
			defer stop()
			get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/faults", nil)
			if err != nil {
				t.Fatal(err)
			}
			if status, body := do(t, get); status != tc.want {
				t.Errorf("GET /faults answered %d %s, want %d", status, body, tc.want)
			}
		})
	}
}

// start runs the program on a free port. stop ends it and waits.
func start(t *testing.T, flags ...string) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"--listen", "127.0.0.1:0"}, flags...), writer)
		_ = writer.CloseWithError(io.EOF)
		ended <- err
	}()
	line, err := bufio.NewReader(reader).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "Neutron simulator: ")
	if err != nil || !ok {
		t.Fatalf("printed %q: %v", line, err)
	}
	return url, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	}
}

func do(t *testing.T, request *http.Request) (status int, body string) {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
