// Package chart_test renders the Helm chart with Helm's own library, compares it with the Kustomize bases, holds it
// against Kubernetes, and runs what it describes against a kube-apiserver of this process.
//
// It is a module of its own, because Helm and kube-apiserver bring hundreds of modules that no other test needs.
package chart_test

import "log/slog"

func init() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // Helm tells of the link to the alerts each time
}
