package e2e

import (
	"context"
	"strings"
	"testing"
	"time"
)

// exitDeadline bounds a program that is to end by itself.
const exitDeadline = 30 * time.Second

// runToEnd runs network-apiserver until it ends by itself.
func runToEnd(t *testing.T, flags ...string) (stdout, stderr string, exitCode int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), exitDeadline)
	defer cancel()
	command := program(ctx, flags...)
	var out, log strings.Builder
	command.Stdout, command.Stderr = &out, &log
	// The error says no more than the exit code.
	_ = command.Run()
	if ctx.Err() != nil {
		t.Fatalf("network-apiserver %s did not end within %v:\n%s", strings.Join(flags, " "), exitDeadline, log.String())
	}
	return out.String(), log.String(), command.ProcessState.ExitCode()
}

func TestHelp(t *testing.T) {
	t.Parallel()
	stdout, stderr, exitCode := runToEnd(t, "--help")
	if exitCode != 0 {
		t.Errorf("--help ended with %d: %s", exitCode, stderr)
	}
	for _, want := range []string{
		"Serve samplecrd.k8s.io/Network and make each Network real in OpenStack Neutron",
		"--standalone", "--data-dir", "--secure-port", "--cluster-id", "--runtime-config",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("--help does not tell of %q:\n%s", want, stdout)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	stdout, _, exitCode := runToEnd(t, "--version")
	if exitCode != 0 || !strings.Contains(stdout, kubeVersion+"+network-apiserver.e2e") {
		t.Errorf("--version ended with %d and printed %q, want the version %s", exitCode, stdout, kubeVersion)
	}
}

func TestFlagsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags []string // beside those of a good start
		want  string
	}{
		"an unknown flag":                           {[]string{"--no-such-flag"}, "unknown flag: --no-such-flag"},
		"an argument":                               {[]string{"extra"}, `"extra"`},
		"no data directory":                         {[]string{"--data-dir="}, "--data-dir must be given"},
		"no mode to run in":                         {[]string{"--standalone=false"}, "--standalone must be given"},
		"a cluster beside a standalone server":      {[]string{"--kubeconfig=/any"}, "--kubeconfig is of a server in a cluster"},
		"an etcd beside that of the process":        {[]string{"--etcd-servers=https://127.0.0.1:1"}, "--etcd-servers is of a server in a cluster"},
		"a policy plugin without a cluster":         {[]string{"--enable-admission-plugins=ValidatingAdmissionPolicy"}, "ValidatingAdmissionPolicy needs a cluster"},
		"a data directory in a cluster":             {[]string{"--standalone=false", "--etcd-servers=https://127.0.0.1:1"}, "--data-dir is of --standalone"},
		"a free port in a cluster":                  {[]string{"--standalone=false", "--etcd-servers=https://127.0.0.1:1"}, "--secure-port 0 is of --standalone"},
		"no cloud in a cluster":                     {[]string{"--standalone=false", "--etcd-servers=https://127.0.0.1:1"}, "--os-cloud must be given"},
		"a cluster ID that is too long":             {[]string{"--cluster-id", strings.Repeat("x", 64)}, "--cluster-id"},
		"a cluster ID that parts the marker":        {[]string{"--cluster-id", "a/b"}, "--cluster-id"},
		"a cluster ID with a space":                 {[]string{"--cluster-id", "a b"}, "--cluster-id"},
		"a cluster ID that ends the marker":         {[]string{"--cluster-id", "a]"}, "--cluster-id"},
		"no workers":                                {[]string{"--concurrent-network-syncs=0"}, "--concurrent-network-syncs"},
		"a simulator address without a port":        {[]string{"--simulator-address=127.0.0.1"}, "--simulator-address"},
		"the version that the controller reads off": {[]string{"--runtime-config=samplecrd.k8s.io/v1=false"}, "--controller=false"},
		"a version that is not known":               {[]string{"--runtime-config=samplecrd.k8s.io/v9=true"}, "--runtime-config: group version samplecrd.k8s.io/v9"},
		"a port that is none":                       {[]string{"--secure-port=70000"}, "--secure-port"},
		"an admission file that is not there":       {[]string{"--admission-control-config-file=/nonexistent"}, "/nonexistent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := append([]string{"--standalone", "--data-dir", dataDir(t), "--secure-port=0"}, tc.flags...)
			stdout, stderr, exitCode := runToEnd(t, flags...)
			if exitCode == 0 || stdout != "" {
				t.Errorf("ended with %d and printed %q", exitCode, stdout)
			}
			if !strings.Contains(stderr, tc.want) {
				t.Errorf("the error does not tell of %q:\n%s", tc.want, stderr)
			}
			if strings.Contains(stderr, "goroutine ") {
				t.Errorf("it crashed:\n%s", stderr)
			}
		})
	}
}

func TestRuntimeConfig(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags []string
		want  string
	}{
		"v2alpha1 is not served where it is off": {
			[]string{"--runtime-config=samplecrd.k8s.io/v2alpha1=false"}, "pipeline.samplecrd.k8s.io/v1alpha1\nsamplecrd.k8s.io/v1\n",
		},
		"v1 can be off where no controller reads it": {
			[]string{"--runtime-config=samplecrd.k8s.io/v1=false", "--controller=false"}, "pipeline.samplecrd.k8s.io/v1alpha1\nsamplecrd.k8s.io/v2alpha1\n",
		},
		"no traces are served where none are kept": {
			[]string{"--pipeline-traces=0"}, "samplecrd.k8s.io/v1\nsamplecrd.k8s.io/v2alpha1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, dataDir(t), tc.flags...)
			if got := s.kubectl(t, "api-versions"); got != tc.want {
				t.Errorf("served are %q, want %q", got, tc.want)
			}
			if got := s.kubectl(t, "get", "networks", "-o", "name"); got != "" {
				t.Errorf("networks of a new server are %q", got)
			}
		})
	}
}
