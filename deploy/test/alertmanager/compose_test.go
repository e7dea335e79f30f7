package alertmanager_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pulling bounds the try to pull an image, before one is made of its program.
const pulling = time.Minute

// TestCompose: the profile alerts of docker-compose.yml starts, and deploy/examples/incident.sh gives it something to
// tell, which arrives as mail.
func TestCompose(t *testing.T) {
	if os.Getenv("E2E_COMPOSE") == "" {
		t.Skip("set E2E_COMPOSE=1 to run against docker compose (make e2e does)")
	}
	c := &compose{project: cmp.Or(os.Getenv("E2E_PROJECT"), fmt.Sprintf("tidings-e2e-%d", os.Getpid())) + "-alerts", url: map[string]string{}}
	for _, name := range []string{"TOKEN_PORT", "HTTP_PORT", "HTTPS_PORT", "ALERTMANAGER_PORT", "MAIL_PORT"} {
		_, port, _ := net.SplitHostPort(free(t))
		c.env, c.url[name] = append(c.env, name+"="+port), "http://localhost:"+port
	}
	c.images(t)
	up := []string{"up", "--wait", "--wait-timeout=600"}
	if os.Getenv("E2E_COMPOSE") != "built" {
		up = append(up, "--build")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.run(t, "logs", "--no-color", "--tail=100"))
		}
		c.run(t, "down", "--volumes")
	})
	c.run(t, up...)
	record := exec.CommandContext(t.Context(), "sh", "-c", `"$1" | "$2" record -f - --server="$3" --token-url="$4/oauth2/token" --client-id=demo --client-secret-file="$5"`,
		"sh", filepath.Join(root, "deploy/examples/incident.sh"), filepath.Join(bin, "eventsvc"), c.url["HTTP_PORT"], c.url["TOKEN_PORT"], filepath.Join(root, "deploy/local/demo-secret"))
	if out, err := record.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var inbox struct {
		Messages []struct{ ID, Subject string }
	}
	var id string
	until(t, "the mail about images arrives", func() bool {
		read(t, c.url["MAIL_PORT"]+"/api/v1/messages", &inbox)
		for _, m := range inbox.Messages {
			if strings.Contains(m.Subject, "ImagePullFails") && strings.HasPrefix(m.Subject, "[FIRING:") {
				id = m.ID
			}
		}
		return id != ""
	})
	var mail struct {
		HTML string
		To   []struct{ Address string }
	}
	read(t, c.url["MAIL_PORT"]+"/api/v1/message/"+id, &mail)
	for _, want := range []string{"Pod shop/checkout-7d9f-0: Failed", "Failed to pull image checkout:1.4.2: not found", c.url["HTTP_PORT"] + "/console/#/events?"} {
		if !strings.Contains(mail.HTML, want) {
			t.Errorf("the mail lacks %s:\n%s", want, mail.HTML)
		}
	}
	if len(mail.To) != 1 || mail.To[0].Address != "oncall@example.com" {
		t.Errorf("it is for %v", mail.To)
	}
}

// compose is the project of docker-compose.yml with the profile alerts, under a name and on ports of its own.
type compose struct {
	project string
	env     []string
	url     map[string]string // by the variable of the port
}

func (c *compose) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("docker", append([]string{"compose", "--profile", "alerts", "--project-name", c.project, "--progress", "quiet"}, args...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), c.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("docker compose %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// images sees to the two images that are not ours. One that is not here and cannot be pulled is made of its program, as
// far as this profile sees it, and removed at the end.
func (c *compose) images(t *testing.T) {
	var config struct {
		Services map[string]struct{ Image string }
	}
	if err := json.Unmarshal([]byte(c.run(t, "config", "--format=json")), &config); err != nil {
		t.Fatal(err)
	}
	for service, stands := range map[string]struct{ program, from, rest string }{
		"alertmanager": {"alertmanager", "", `COPY --chown=65534:65534 data /alertmanager
USER 65534:65534
ENTRYPOINT ["/alertmanager-program", "--config.file=/etc/alertmanager/alertmanager.yml", "--storage.path=/alertmanager"]`},
		"mail": {"mailpit", "github.com/axllent/mailpit", `ENTRYPOINT ["/mailpit-program"]`},
	} {
		image := config.Services[service].Image
		pull, cancel := context.WithTimeout(t.Context(), pulling)
		defer cancel()
		if exec.Command("docker", "image", "inspect", image).Run() == nil || exec.CommandContext(pull, "docker", "pull", "--quiet", image).Run() == nil {
			continue
		}
		t.Logf("%s cannot be pulled, and is made of its program", image)
		dir := t.TempDir()
		program := filepath.Join(dir, stands.program+"-program")
		err := os.Mkdir(filepath.Join(dir, "data"), 0o755)
		if err == nil && stands.from != "" {
			_, err = run(".", "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, stands.from)
		} else if err == nil {
			err = os.Link(filepath.Join(bin, stands.program), program)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "Dockerfile"), fmt.Appendf(nil, "FROM scratch\nCOPY %[1]s /%[1]s\n%[2]s\n", filepath.Base(program), stands.rest), 0o600)
		}
		if err == nil {
			_, err = run(dir, "docker", "build", "--quiet", "--tag", image, ".")
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = exec.Command("docker", "image", "rm", image).Run() })
	}
}

// read decodes an answer, and leaves the value as it is where there is none.
func read(t *testing.T, url string, into any) {
	res, err := http.Get(url)
	if err != nil {
		return
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil {
		t.Errorf("%s: %v", url, err)
	}
}
