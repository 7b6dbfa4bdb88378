package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// deadline is far above what a start and a stop take.
	deadline = 5 * time.Minute
	// asKube makes the test binary be kube.
	asKube = "TEST_AS_KUBE"
)

var bin = flag.String("bin", "../../bin", "folder of etcd, kube-apiserver, kube-controller-manager and kubectl")

func TestMain(m *testing.M) {
	if os.Getenv(asKube) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestClusterOutlivesItsProcesses(t *testing.T) {
	dir := t.TempDir()
	k := start(t, dir)
	k.kubectl(t, "create", "namespace", "kept")
	// Made by kube-controller-manager.
	k.kubectl(t, "wait", "--for=create", "serviceaccount/default", "--namespace=kept", "--timeout=1m")
	if got, want := k.kubectl(t, "version"), "Server Version: v1.37.2"; !strings.Contains(got, want) {
		t.Errorf("kubectl version says %q, want %q in it", got, want)
	}
	server := k.kubectl(t, "config", "view", "--output=jsonpath={.clusters[0].cluster.server}")

	k.signal(t, syscall.SIGTERM)
	if k.exitCode() != 0 {
		t.Errorf("exit code after SIGTERM is %d, want 0", k.exitCode())
	}
	wantGone(t, k)
	const wantEnd = "ended kube-controller-manager, signal: terminated\n" +
		"ended kube-apiserver, exit status 0\n" +
		"ended etcd, signal: terminated\n"
	if got := k.stderr.String(); !strings.HasSuffix(got, wantEnd) {
		t.Errorf("stderr is\n%s\nwant at its end\n%s", got, wantEnd)
	}

	k = start(t, dir)
	k.kubectl(t, "get", "namespace", "kept")
	if got := k.kubectl(t, "config", "view", "--output=jsonpath={.clusters[0].cluster.server}"); got != server {
		t.Errorf("server is %s after a restart, was %s", got, server)
	}
	k.signal(t, syscall.SIGKILL)
	wantGone(t, k)

	k = start(t, dir)
	k.kubectl(t, "get", "namespace", "kept")
}

func TestAccess(t *testing.T) {
	k := start(t, t.TempDir())
	env := k.env(t)
	for _, name := range []string{"KUBECONFIG", "SERVER_KUBECONFIG", "ETCD_CAFILE", "ETCD_CERTFILE", "ETCD_KEYFILE"} {
		info, err := os.Stat(env[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", env[name], info.Mode())
		}
	}
	who := k.kubectl(t, "--kubeconfig", env["SERVER_KUBECONFIG"], "auth", "whoami", "--output=jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
	const wantWho = `system:serviceaccount:network-apiserver:network-apiserver ` +
		`["system:serviceaccounts","system:serviceaccounts:network-apiserver","system:authenticated"]`
	if who != wantWho {
		t.Errorf("the server is %s, want %s", who, wantWho)
	}
	if got := k.kubectl(t, "get", "configmap", "--namespace=kube-system", "extension-apiserver-authentication",
		"--output=jsonpath={.data.requestheader-allowed-names}"); got != `["front-proxy-client"]` {
		t.Errorf("front proxy published as %s", got)
	}

	pki := filepath.Join(k.dir, "pki")
	server := k.kubectl(t, "config", "view", "--output=jsonpath={.clusters[0].cluster.server}")
	etcd := pair{env["ETCD_CERTFILE"], env["ETCD_KEYFILE"]}
	admin := pair{filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key")}
	frontProxy := pair{filepath.Join(pki, "front-proxy-client.crt"), filepath.Join(pki, "front-proxy-client.key")}
	for name, tc := range map[string]struct {
		ca, url string
		client  pair
		want    bool
	}{
		"etcd lets in who has its certificate":                       {"etcd-ca", env["ETCD_SERVERS"] + "/version", etcd, true},
		"etcd lets no administrator of the cluster in":               {"etcd-ca", env["ETCD_SERVERS"] + "/version", admin, false},
		"kube-apiserver lets administrators in":                      {"ca", server + "/api/v1/secrets", admin, true},
		"kube-apiserver does not know who has a certificate of etcd": {"ca", server + "/api/v1/secrets", etcd, false},
		"the front proxy is nobody by itself":                        {"ca", server + "/api/v1/secrets", frontProxy, false},
	} {
		t.Run(name, func(t *testing.T) {
			ca, err := newAuthority(pki, tc.ca)
			if err != nil {
				t.Fatal(err)
			}
			client, err := ca.httpClient(tc.client)
			if err != nil {
				t.Fatal(err)
			}
			if got := (component{client: client}).answers(t.Context(), tc.url); got != tc.want {
				t.Errorf("let in: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		script string
		signal syscall.Signal // once the script has written a line
		want   int
	}{
		"has the cluster":              {script: `kubectl get namespaces --output=name && test -n "$ETCD_SERVERS" && exit 7`, want: 7},
		"ended by a signal":            {script: `kill -KILL $$`, want: 128 + 9},
		"is asked to end when kube is": {script: `trap 'exit 8' TERM; echo; while :; do read -t 60 line <> "$FIFO"; done`, signal: syscall.SIGTERM, want: 8},
	} {
		t.Run(name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			k := launch(t, dir, "-bin", *bin, "-data", dir, "--", "bash", "-c", "FIFO="+fifo+"; "+tc.script)
			if tc.signal != 0 {
				k.stdout.wait(t, k, "\n")
				k.signal(t, tc.signal)
			}
			k.wait(t)
			if got := k.exitCode(); got != tc.want {
				t.Errorf("exit code is %d, want %d\n%s%s", got, tc.want, &k.stdout, &k.stderr)
			}
			wantGone(t, k)
		})
	}
}

func TestComponentEnds(t *testing.T) {
	for name, i := range map[string]int{"etcd": 0, "kube-apiserver": 1, "kube-controller-manager": 2} {
		t.Run(name, func(t *testing.T) {
			k := start(t, t.TempDir())
			if err := syscall.Kill(k.children()[i], syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			k.wantFailure(t, "ended "+name+", signal: killed\n", "the end of its log ")
		})
	}
}

func TestDoesNotStart(t *testing.T) {
	empty := t.TempDir()
	incomplete := t.TempDir()
	etcd, err := filepath.Abs(filepath.Join(*bin, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(etcd, filepath.Join(incomplete, "etcd")); err != nil {
		t.Fatal(err)
	}
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	port := taken.Addr().(*net.TCPAddr).Port

	for name, tc := range map[string]struct {
		ports string
		args  []string
		want  string
	}{
		"no folder of programs":      {args: []string{"-data", "DATA"}, want: "-bin DIR is missing"},
		"no folder of data":          {args: []string{"-bin", *bin}, want: "-data DIR is missing"},
		"no program at all":          {args: []string{"-bin", empty, "-data", "DATA"}, want: "start etcd: fork/exec " + empty + "/etcd: no such file or directory"},
		"a program is missing":       {args: []string{"-bin", incomplete, "-data", "DATA"}, want: "start kube-apiserver: fork/exec " + incomplete + "/kube-apiserver: no such file or directory"},
		"a component does not start": {args: []string{"-bin", *bin, "-data", "DATA", "-apiserver=--no-such-flag"}, want: "unknown flag: --no-such-flag"},
		"no such command":            {args: []string{"-bin", *bin, "-data", "DATA", "--", "no-such-command"}, want: `exec: "no-such-command": executable file not found in $PATH`},
		"a port is taken": {
			ports: fmt.Sprintf(`{"apiserver": %d}`, port),
			args:  []string{"-bin", *bin, "-data", "DATA"},
			want:  fmt.Sprintf("ports.json holds for kube-apiserver (does another kube run there?): listen tcp 127.0.0.1:%d: bind: address already in use", port),
		},
		"damaged ports": {ports: "{", args: []string{"-bin", *bin, "-data", "DATA"}, want: "read ports from "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.ports != "" {
				if err := os.WriteFile(filepath.Join(dir, "ports.json"), []byte(tc.ports), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := slices.Clone(tc.args)
			if i := slices.Index(args, "DATA"); i >= 0 {
				args[i] = dir
			}
			launch(t, dir, args...).wantFailure(t, tc.want)
		})
	}
}

// kube is a kube that runs, or ran.
type kube struct {
	dir            string
	command        *exec.Cmd
	stdout, stderr output
	ended          chan struct{}
}

// start returns when the cluster is ready.
func start(t *testing.T, dir string) *kube {
	t.Helper()
	k := launch(t, dir, "-bin", *bin, "-data", dir)
	begin := time.Now()
	k.stderr.wait(t, k, "export KUBECONFIG="+filepath.Join(dir, "kubeconfig")+"\n")
	t.Logf("ready after %v", time.Since(begin))
	return k
}

// launch starts kube; the test ends it.
func launch(t *testing.T, dir string, args ...string) *kube {
	t.Helper()
	// Not of the context of the test: kube is asked to end, not killed.
	command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	k := &kube{dir: dir, command: command, ended: make(chan struct{})}
	command.Env = append(os.Environ(), asKube+"=1")
	command.Stdout, command.Stderr = &k.stdout, &k.stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(k.ended)
		_ = command.Wait()
	}()
	t.Cleanup(func() { k.signal(t, syscall.SIGTERM) })
	return k
}

// signal sends a signal to a kube that runs, and waits until it has ended.
func (k *kube) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	select {
	case <-k.ended:
		return
	default:
	}
	_ = k.command.Process.Signal(signal)
	k.wait(t)
}

func (k *kube) wait(t *testing.T) {
	t.Helper()
	select {
	case <-k.ended:
	case <-time.After(deadline):
		_ = k.command.Process.Kill()
		t.Fatalf("kube has not ended after %v:\n%s", deadline, &k.stderr)
	}
}

func (k *kube) exitCode() int {
	return k.command.ProcessState.ExitCode()
}

// wantFailure waits for kube to end as it does for an error, with nothing left.
func (k *kube) wantFailure(t *testing.T, want ...string) {
	t.Helper()
	k.wait(t)
	got := k.stderr.String()
	lacks := func(text string) bool { return !strings.Contains(got, text) }
	if k.exitCode() != 1 || slices.ContainsFunc(want, lacks) {
		t.Errorf("exit code is %d, want 1; stderr is\n%s\nwant in it\n%s", k.exitCode(), got, strings.Join(want, "\n"))
	}
	wantGone(t, k)
}

func (k *kube) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(*bin, "kubectl"), args...)
	command.Env = []string{"KUBECONFIG=" + k.env(t)["KUBECONFIG"], "HOME=" + t.TempDir()}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	stdout, err := command.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(stdout)
}

func (k *kube) env(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(k.dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	return env
}

var started = regexp.MustCompile(`(?m)^started \S+, process (\d+),`)

// children are the processes that kube started.
func (k *kube) children() []int {
	var pids []int
	for _, match := range started.FindAllStringSubmatch(k.stderr.String(), -1) {
		pid, _ := strconv.Atoi(match[1]) // digits
		pids = append(pids, pid)
	}
	return pids
}

// wantGone waits for the end of what a kube that has ended had started.
func wantGone(t *testing.T, k *kube) {
	t.Helper()
	eventually(t, "children of kube have ended", func() bool { return !slices.ContainsFunc(k.children(), runs) })
}

// runs is false for a zombie: an init that reaps none is not ours to mend. One with threads that have not ended yet still
// holds its ports.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return err == nil && (len(threads) > 1 || !bytes.Contains(stat, []byte(") Z ")))
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.After(deadline)
	for !holds() {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("not so after %v: %s", deadline, what)
		}
	}
}

// output is what a program writes, to be read while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// wait returns when a kube has written that text.
func (o *output) wait(t *testing.T, k *kube, text string) {
	t.Helper()
	eventually(t, "written: "+text, func() bool {
		select {
		case <-k.ended:
			t.Fatalf("kube has ended: %v\n%s", k.command.ProcessState, &k.stderr)
		default:
		}
		return strings.Contains(o.String(), text)
	})
}
