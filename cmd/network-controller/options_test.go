package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samplecrd/network-apiserver/pkg/controller"
)

func TestParse(t *testing.T) {
	// As the course prints it: one dash, and klog's own flags.
	o, err := parse(strings.Fields("-kubeconfig=/home/me/.kube/config -alsologtostderr=true -os-cloud demo --cluster-id=c1 -v 2"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := &options{
		kubeconfig: "/home/me/.kube/config", cloud: "demo", clusterID: "c1",
		drift: "Correct", resyncPeriod: 10 * time.Minute, workers: 8,
		deploymentCIDRPool: "10.128.0.0/9", leaderElection: controller.NewLeaderElection(),
	}
	if diff := cmp.Diff(want, o, cmp.AllowUnexported(options{})); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	const valid = "-os-cloud demo -cluster-id c1 "
	for args, want := range map[string]string{
		"":                                      "-os-cloud must be given",
		valid + "more":                          `unexpected argument "more"`,
		valid + "-drift Ignore":                 `-drift "Ignore" must be Correct or Report`,
		valid + "-resync-period 10ms":           "-resync-period 10ms must be at least 1s",
		valid + "-concurrent-network-syncs 0":   "-concurrent-network-syncs 0 must be at least 1",
		"-os-cloud demo -cluster-id a/b":        `-cluster-id "a/b": a valid label must`,
		valid + "-deployment-cidr-pool x":       `-deployment-cidr-pool: CIDR pool "x"`,
		valid + "-leader-elect=maybe":           `invalid boolean value "maybe" for -leader-elect`,
		valid + "-kubeconfg x":                  "flag provided but not defined: -kubeconfg",
		valid + "-resync-period=soon -os-cloud": `invalid value "soon" for flag -resync-period`,
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", args, err, want)
		}
	}
}

func TestHelpTellsTheCommands(t *testing.T) {
	var help strings.Builder
	if _, err := parse([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error %v, want %v", err, flag.ErrHelp)
	}
	for _, part := range []string{"network-controller orphans [flags]", "-os-cloud name", "-kubeconfig file"} {
		if !strings.Contains(help.String(), part) {
			t.Errorf("the help does not hold %q:\n%s", part, help.String())
		}
	}
}

func TestNoAPIIsSaid(t *testing.T) {
	err := run(t.Context(), strings.Fields("orphans -os-cloud demo -cluster-id c1 -kubeconfig "+t.TempDir()+"/none"), io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "finding the API") {
		t.Errorf("error %v, want one about the API", err)
	}
}
