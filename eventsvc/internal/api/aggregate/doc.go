// Package aggregate is an aggregated API server of Kubernetes for the events of another eventsvc: what people ask with
// their kubeconfig reaches kube-apiserver, which passes it to this server as a front proxy.
//
// # Contract
//
// A request passes:
//
//  1. the front proxy: the certificate of the connection and the headers with the user ([FrontProxy]), for every request
//  2. the limits of one user and of all
//  3. a SubjectAccessReview ([Reviewer]), for events only
//  4. the event server, with this process's own token ([client.Client])
//
// Discovery and OpenAPI are answered from memory, for everybody whom the front proxy names, whether the event server
// answers or not: while they fail, no namespace of the cluster can be deleted. They name one group and no other,
// because kube-apiserver would serve any shared group from here. They advertise get, and list if set: controllers act
// on what is advertised, and the namespace controller would delete history.
//
// Only reads are served. Every write is answered with 405.
//
// # Errors
//
// Everything that is not certain is refused: a certificate that cannot be verified with 401, a right that cannot be
// reviewed and an event server that cannot be asked with 503.
//
// # Concurrency
//
// All types are safe for concurrent use.
package aggregate
