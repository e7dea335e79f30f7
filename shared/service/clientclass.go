package service

import "strings"

// clientClasses maps parts of user agents to classes. The first part that matches counts.
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

// clientClass returns the class of a client's user agent. Classes are few, because they are labels of metrics.
func clientClass(agent string) string {
	for _, c := range clientClasses {
		if strings.Contains(agent, c.part) {
			return c.class
		}
	}
	return "other"
}
