package api_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tidings.example/eventsvc/internal/api/apitest"
)

// TestReadmeRoutes: README.md has each path of events and of what is beside them, and no path that is not served.
func TestReadmeRoutes(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(page(t, "../../README.md"), "\n## The API\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := regexp.MustCompile("\\b(?:GET|POST|PUT|PATCH|DELETE) /[^`]+").FindAllString(section, -1)
	var served []string
	for _, route := range apitest.New(t).Server.Routes() {
		method, path, _ := strings.Cut(route, " ")
		for _, group := range []string{"/api/v1", "/apis/events.k8s.io/v1"} {
			below := strings.TrimPrefix(path, group)
			if below != path && (strings.Contains(below, "/events") || strings.HasPrefix(below, "/watch")) {
				path = below // under either
			}
		}
		if elsewhere.MatchString(route) {
			continue
		}
		served = append(served, method+" "+regexp.MustCompile(`:(\w+)`).ReplaceAllString(path, "{$1}"))
	}
	same(t, documented, served)
}

// elsewhere are routes that other tests and pages are about: queries, Loki's, probes, and what describes the API.
var elsewhere = regexp.MustCompile(`^echo_route_not_found |^\w+ /(query|loki|healthz|livez|readyz|openapi|version)\b|^GET /(api(/v1)?|apis(/[a-z0-9.]+(/v[0-9]+)?)?)?$`)

// TestGrafanaPaths: the page about Grafana has each path of Loki's, and no other.
func TestGrafanaPaths(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(page(t, "../../../deploy/docs/how-to/grafana.md"), "\n## Paths\n")
	section, _, _ = strings.Cut(section, "\n\nVolumes")
	var documented, served []string
	for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(section, -1)[1:] { // without the folder
		documented = append(documented, code[1])
	}
	for _, route := range apitest.New(t).Server.Routes() {
		if _, path, ok := strings.Cut(route, " /loki/api/v1/"); ok {
			served = append(served, strings.ReplaceAll(path, ":label", "NAME"))
		}
	}
	same(t, documented, served)
}

func page(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// same reports what only one of two lists has.
func same(t *testing.T, documented, served []string) {
	t.Helper()
	for _, d := range documented {
		if !slices.Contains(served, d) {
			t.Errorf("%s is documented and not served", d)
		}
	}
	for _, s := range served {
		if !slices.Contains(documented, s) {
			t.Errorf("%s is served and not documented", s)
		}
	}
	if len(served) < 10 {
		t.Errorf("only %d routes are found", len(served))
	}
}
