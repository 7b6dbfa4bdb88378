package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
)

const (
	host = "127.0.0.1"

	// lowestPort and highestPort bound the choice to ports that the usual kernel gives to no client: one of those might
	// be taken before a component gets to it, or while the cluster is down.
	lowestPort, highestPort = 10000, 29999
)

// ports are the TCP ports of a cluster.
type ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"apiserver"`
	ControllerManager int `json:"controllerManager"`
	// Of those that COMMAND may start: the server that joins, and its Neutron.
	Server  int `json:"server"`
	Neutron int `json:"neutron"`
}

// loadPorts reads the ports from a file, or chooses free ones and keeps them there: the addresses of a cluster outlive
// it. A port that is taken is an error.
func loadPorts(ctx context.Context, path string) (*ports, error) {
	p := &ports{}
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, p)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read ports from %s: %w", path, err)
	}
	for name, port := range map[string]*int{
		"etcd": &p.Etcd, "peers of etcd": &p.EtcdPeer, "kube-apiserver": &p.APIServer, "kube-controller-manager": &p.ControllerManager,
		"network-apiserver": &p.Server, "neutron-simulator": &p.Neutron,
	} {
		listener, err := listen(ctx, *port)
		if err != nil {
			return nil, fmt.Errorf("take the port that %s holds for %s (does another kube run there?): %w", path, name, err)
		}
		defer listener.Close() //nolint:errcheck // at the end, or two would get the same port
		*port = listener.Addr().(*net.TCPAddr).Port
	}
	if content, err = json.MarshalIndent(p, "", "\t"); err != nil {
		return nil, err
	}
	return p, writeFile(path, append(content, '\n'))
}

// listen takes that port, or one that is free for 0.
func listen(ctx context.Context, port int) (net.Listener, error) {
	var config net.ListenConfig
	if port != 0 {
		return config.Listen(ctx, "tcp", address(port))
	}
	for {
		port = lowestPort + rand.IntN(highestPort-lowestPort+1) //nolint:gosec // a port is no secret
		listener, err := config.Listen(ctx, "tcp", address(port))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
	}
}

func address(port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}

func secureURL(port int) string {
	return "https://" + address(port)
}
