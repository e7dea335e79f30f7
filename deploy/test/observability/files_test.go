package observability_test

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
)

// TestProvisioning: Prometheus itself reads its configuration, scrapes the admin ports of services that
// docker-compose.yml has under jobs that the alerts know, and Grafana finds the data source that the dashboard names.
// The containers' images are not needed for that.
func TestProvisioning(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	compose := read("../../../docker-compose.yml")
	prometheus, err := config.LoadFile(folder+"/prometheus.yml", false, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	targets := 0
	for _, job := range prometheus.ScrapeConfigs {
		for _, sd := range job.ServiceDiscoveryConfigs {
			groups, ok := sd.(discovery.StaticConfig)
			if !ok {
				t.Fatalf("%s is found by %T", job.JobName, sd)
			}
			for _, group := range groups {
				for _, target := range group.Targets {
					targets++
					host, port, err := net.SplitHostPort(string(target["__address__"]))
					if err != nil || job.JobName != host || !strings.Contains(compose, "\n  "+host+":\n") {
						t.Errorf("job %s asks %v, which is no service of that name, %v", job.JobName, target, err)
					} else if !strings.Contains(read("../../Dockerfile"), strings.ToUpper(host)+"_LISTEN_ADMIN=:"+port) {
						t.Errorf("%s has no admin listener on port %s", host, port)
					}
				}
			}
		}
	}
	if targets != 2 {
		t.Errorf("%d targets, want both services", targets)
	}
	mounted := regexp.MustCompile(`- \./(deploy/observability/\S+?):(\S+?):ro`).FindAllStringSubmatch(compose, -1)
	inside := map[string]string{}
	for _, m := range mounted {
		inside[m[2]] = m[1]
		if _, err := os.Stat(filepath.Join("../../..", m[1])); err != nil {
			t.Error(err)
		}
	}
	for _, path := range append(prometheus.RuleFiles, "/etc/prometheus/prometheus.yml", "/var/lib/dashboards/tidings.json") {
		if inside[path] == "" {
			t.Errorf("nothing is mounted at %s", path)
		}
	}
	source := regexp.MustCompile(`uid: (\w+)`).FindStringSubmatch(read(folder + "/grafana/datasource.yaml"))
	for _, uid := range regexp.MustCompile(`"type": "prometheus",\s*"uid": "(\w*)"`).FindAllStringSubmatch(read(folder+"/dashboard.json"), -1) {
		if source == nil || uid[1] != source[1] {
			t.Errorf("a panel asks data source %q, there is %v", uid[1], source)
		}
	}
	if want := "path: " + filepath.Dir("/var/lib/dashboards/tidings.json"); !strings.Contains(read(folder+"/grafana/dashboards.yaml"), want) {
		t.Errorf("dashboards.yaml does not look into the folder of the dashboard: %s", want)
	}
}
