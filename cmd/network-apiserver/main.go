// network-apiserver serves samplecrd.k8s.io/Network and makes each Network real
// in OpenStack Neutron.
package main

import (
	"os"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/samplecrd/network-apiserver/cmd/network-apiserver/app"
)

func main() {
	command := app.NewCommand()
	command.SetContext(genericapiserver.SetupSignalContext())
	os.Exit(cli.Run(command))
}
