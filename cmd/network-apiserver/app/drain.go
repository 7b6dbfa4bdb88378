package app

import (
	"net/http"

	genericapiserver "k8s.io/apiserver/pkg/server"
)

// drainConnections has clients leave a server that is about to end, one
// connection after the other, each between two requests: no request is on its
// way when a connection closes. HTTP/1.1 alone can do that. What a client has
// just sent on a connection that HTTP/2 ends is lost, and kube-apiserver can't
// send a body again (kubernetes/kubernetes#135285).
func drainConnections(config *genericapiserver.Config) {
	build, ending := config.BuildHandlerChainFunc, config.ShutdownInitiatedNotify()
	config.BuildHandlerChainFunc = func(handler http.Handler, config *genericapiserver.Config) http.Handler {
		handler = build(handler, config)
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
}
