package app

import (
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// drainConnections has clients leave a server that is about to end while it
// still serves, for as long as --shutdown-delay-duration.
func drainConnections(config *genericapiserver.Config) {
	build, ending := config.BuildHandlerChainFunc, config.ShutdownInitiatedNotify()
	config.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		return withDraining(build(handler, config), ending)
	}
}

// withDraining ends connections between two requests, so that none is on its
// way when one closes. HTTP/1.1 alone can do that: what a client has just sent
// when HTTP/2 ends a connection is lost, and kube-apiserver can't send a body
// again (kubernetes/kubernetes#135285).
func withDraining(handler http.Handler, ending <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ending:
			if r.ProtoMajor == 1 {
				w.Header().Set("Connection", "close")
			}
		default:
		}
		handler.ServeHTTP(w, r)
	})
}
