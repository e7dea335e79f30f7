package service

import "strings"

// clientClasses are what clients call themselves, and the class under which they are counted. The first that fits counts.
var clientClasses = []struct{ part, class string }{
	{"kubectl/", "kubectl"},
	{"eventsvc/", "eventsvc"},
	{"tokensvc/", "tokensvc"},
	{"kubernetes/", "client-go"}, // "manager/v0.0.0 (linux/amd64) kubernetes/abcdef"
	{"python", "python"},
	{"Python", "python"},
	{"Go-http-client", "go"},
	{"Mozilla/", "browser"},
	{"curl/", "curl"},
	{"Prometheus/", "prometheus"},
	{"kube-probe/", "probe"},
}

// clientClass is one of few names for the program that sends requests: anything may come as a user agent, but a metric's
// labels stay few.
func clientClass(agent string) string {
	for _, c := range clientClasses {
		if strings.Contains(agent, c.part) {
			return c.class
		}
	}
	return "other"
}
