package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// process is a program that a test started.
type process struct {
	name string
	args []string
	dir  string
	env  []string
	log  testenv.Output
	copy io.Writer // of the log, unless nil
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// start runs p until it is stopped or the test ends. A failed test prints the output of p.
func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(filepath.Join(bin, p.name), p.args...)
	p.cmd.Dir, p.cmd.Env = p.dir, append(os.Environ(), p.env...)
	said := io.Writer(&p.log)
	if p.copy != nil {
		said = io.MultiWriter(&p.log, p.copy)
	}
	p.cmd.Stdout, p.cmd.Stderr = said, said
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	p.done = done
	cmd := p.cmd
	go func() { _ = cmd.Wait(); close(done) }()
}

// launch is start with the clean-up that belongs to it.
func (p *process) launch(t *testing.T) *process {
	t.Helper()
	p.start(t)
	t.Cleanup(func() {
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", p.name, p.log.String())
		}
		noSecrets(t, p.log.String())
	})
	return p
}

// secret matches the demo client's secret, and every token, stored hash and key.
var secret = regexp.MustCompile(`client_secret=|eyJ[\w-]+\.[\w-]+\.[\w-]+|\$2[aby]\$\d\d\$|PRIVATE KEY-----|` + clientSecret)

// noSecrets looks through what a service has logged. The guide of `make run` shows the demo client's secret on purpose.
func noSecrets(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		guide := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		if !guide && secret.MatchString(line) {
			t.Errorf("a secret is in the log: %s", line)
		}
	}
}

// end sends a signal and waits until p has ended. After any signal but SIGKILL,
// p must exit with 0.
func (p *process) end(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case <-p.done:
	case <-time.After(deadline):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s did not end within %s of %v", p.name, deadline, sig)
	}
	if code := p.cmd.ProcessState.ExitCode(); sig != syscall.SIGKILL && code != 0 {
		return fmt.Errorf("%s left with %d after %v", p.name, code, sig)
	}
	return nil
}

// waitReady uses the probe that the images use.
func (p *process) waitReady(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, p.name), "healthcheck", "--wait", deadline.String())
	cmd.Env = append(os.Environ(), p.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s is not ready: %v\n%s%s", p.name, err, out, p.log.String())
	}
}

// startLocal starts both services as `make run` does, on free ports, with
// further settings.
func startLocal(t *testing.T, env ...string) *world {
	t.Helper()
	token, data := porttest.Addr(t), t.TempDir()
	plain, secure := porttest.Addr(t), porttest.Addr(t)
	tokenAdmin, eventAdmin := porttest.Addr(t), porttest.Addr(t)
	services := map[string]*process{
		"tokensvc": {name: "tokensvc", env: []string{
			"TOKENSVC_LISTEN_HTTP=" + token,
			"TOKENSVC_LISTEN_ADMIN=" + tokenAdmin,
			"TOKENSVC_CLIENTS_FILE=" + filepath.Join(root, "deploy/local/clients.yaml"),
		}},
		"eventsvc": {name: "eventsvc", env: []string{
			"EVENTSVC_LISTEN_HTTP=" + plain,
			"EVENTSVC_LISTEN_HTTPS=" + secure,
			"EVENTSVC_LISTEN_ADMIN=" + eventAdmin,
			"EVENTSVC_ISSUER=http://" + token,
			"EVENTSVC_BASIC_TOKEN_URL=http://" + token + "/oauth2/token",
			"EVENTSVC_TLS_SELF_SIGNED=true",
			"EVENTSVC_DATA_DIR=" + data,
		}},
	}
	for _, p := range services {
		for _, setting := range env {
			if strings.HasPrefix(setting, strings.ToUpper(p.name)+"_") {
				p.env = append(p.env, setting)
			}
		}
		p.launch(t)
	}
	again := func(sig syscall.Signal) func(*testing.T, string) {
		return func(t *testing.T, service string) {
			t.Helper()
			p := services[service]
			if err := p.end(sig); err != nil {
				t.Fatal(err)
			}
			p.start(t)
			p.waitReady(t)
		}
	}
	for _, p := range services {
		p.waitReady(t)
	}
	w := &world{
		probes: []string{"http://" + tokenAdmin, "http://" + eventAdmin},
		tokens: "http://" + token, events: "http://" + plain, secure: "https://" + secure,
		ca:      filepath.Join(data, "tls/ca.crt"),
		restart: again(syscall.SIGTERM),
		kill:    again(syscall.SIGKILL),
		log:     func(service string) string { return services[service].log.String() },
	}
	w.inside = w.token
	w.recreate = func(t *testing.T) { // a process has nothing but its data
		t.Helper()
		w.restart(t, "eventsvc")
		w.restart(t, "tokensvc")
	}
	return w
}
