package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/deploy/test/internal/testenv"
	"tidings.example/shared/porttest"
)

// image is what `docker save` shows of an image.
type image struct {
	packed, unpacked int64    // bytes of the layers, by gzip and as they are
	files            []string // all that is not a folder
	writable         []string // what the user of the image may write to
	user             string
}

// inspect reads an image without running it.
func inspect(t *testing.T, name string) image {
	t.Helper()
	saved, err := exec.CommandContext(t.Context(), "docker", "save", name).Output()
	if err != nil {
		t.Fatalf("docker save %s: %v %s", name, err, stderrOf(err))
	}
	blobs := map[string][]byte{}
	each(t, saved, func(header *tar.Header, content []byte) { blobs[header.Name] = content })
	var manifest []struct {
		Config string
		Layers []string
	}
	var config struct{ Config struct{ User string } }
	if err := errors.Join(json.Unmarshal(blobs["manifest.json"], &manifest), json.Unmarshal(blobs[manifest[0].Config], &config)); err != nil {
		t.Fatal(err)
	}
	out := image{user: config.Config.User}
	for _, name := range manifest[0].Layers {
		layer := blobs[name]
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		if _, err := zip.Write(layer); err != nil {
			t.Fatal(err)
		}
		zip.Close()
		out.packed += int64(packed.Len())
		each(t, layer, func(header *tar.Header, content []byte) {
			out.unpacked += int64(len(content))
			path := "/" + strings.Trim(header.Name, "/")
			if header.Typeflag != tar.TypeDir {
				out.files = append(out.files, path)
			}
			if header.Mode&0o002 != 0 || header.Uid == 65532 && header.Mode&0o200 != 0 || header.Gid == 65532 && header.Mode&0o020 != 0 {
				out.writable = append(out.writable, path)
			}
		})
	}
	slices.Sort(out.files)
	return out
}

func each(t *testing.T, archive []byte, visit func(*tar.Header, []byte)) {
	t.Helper()
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		visit(header, content)
	}
}

// testImages checks the content and the size of the images.
func testImages(t *testing.T) {
	for name, want := range map[string]struct {
		packed, unpacked int64 // MiB
		writable         []string
	}{"tokensvc": {10, 24, nil}, "eventsvc": {16, 48, []string{"/data"}}} {
		got := inspect(t, "tidings/"+name)
		t.Logf("%s: %.1f MiB as compressed layers, %.1f MiB unpacked", name, float64(got.packed)/(1<<20), float64(got.unpacked)/(1<<20))
		if got.packed > want.packed<<20 || got.unpacked > want.unpacked<<20 {
			t.Errorf("%s is larger than %d and %d MiB", name, want.packed, want.unpacked)
		}
		if diff := cmp.Diff([]string{"/etc/ssl/certs/ca-certificates.crt", "/usr/local/bin/" + name}, got.files); diff != "" {
			t.Errorf("%s: more than the program and certificates, such as a shell (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(want.writable, got.writable); diff != "" || got.user != "65532:65532" {
			t.Errorf("%s: user %s may write to what it should not (-want +got):\n%s", name, got.user, diff)
		}
	}
}

var dockerRun = regexp.MustCompile(`(?m)^docker run (?:.*\\\n)*.*$`)

// testDockerRun runs the `docker run` lines of the README of each service, on other ports.
func testDockerRun(t *testing.T) {
	for service, first := range map[string]string{"tokensvc": "9000", "eventsvc": "8080"} {
		readme, err := os.ReadFile(filepath.Join(root, service, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		lines := dockerRun.FindAllString(string(readme), -1)
		if len(lines) == 0 {
			t.Errorf("%s/README.md has no docker run line", service)
		}
		for i, line := range lines {
			t.Run(fmt.Sprintf("%s-%d", service, i), func(t *testing.T) {
				name := fmt.Sprintf("tidings-e2e-run-%s-%d-%d", service, i, os.Getpid())
				addr := porttest.Addr(t)
				line = strings.NewReplacer(
					"docker run", "docker run --detach --name "+name, "127.0.0.1:"+first+":", addr+":",
					"LISTEN_HTTP=127.0.0.1:"+first, "LISTEN_HTTP="+addr, "LISTEN_ADMIN=127.0.0.1:8081", "LISTEN_ADMIN="+porttest.Addr(t),
					"tidings-events", name,
				).Replace(line)
				dir := t.TempDir() // with what a reader has there: the repository, and a DSN of their own
				if err := os.WriteFile(filepath.Join(dir, "dsn"), []byte("postgres://tokensvc@127.0.0.1/none\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.CommandContext(t.Context(), "cp", "-r", filepath.Join(root, "deploy"), dir).CombinedOutput(); err != nil {
					t.Fatalf("%v %s", err, out)
				}
				run := exec.CommandContext(t.Context(), "sh", "-c", line)
				run.Dir = dir
				out, err := run.CombinedOutput()
				t.Cleanup(func() {
					if t.Failed() {
						said, _ := exec.Command("docker", "logs", name).CombinedOutput()
						t.Logf("%s", said)
					}
					_ = exec.Command("docker", "rm", "--force", "--volumes", name).Run()
					_ = exec.Command("docker", "volume", "rm", name).Run()
				})
				if err != nil {
					t.Fatalf("%s\n%v %s", line, err, out)
				}
				path := map[string]string{"tokensvc": "/oauth2/jwks", "eventsvc": "/livez"}[service]
				testenv.Eventually(t, "it answers", deadline, func() error {
					req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, nil)
					if err != nil {
						return err
					}
					resp, err := http.DefaultClient.Do(req)
					if err != nil {
						return err
					}
					defer resp.Body.Close()
					if resp.StatusCode != http.StatusOK {
						return fmt.Errorf("%s answers %s", path, resp.Status)
					}
					return nil
				})
				if strings.Contains(line, "clients.yaml") {
					if _, code, err := requestToken(t.Context(), "http://"+addr, clientID, clientSecret); err != nil || code != http.StatusOK {
						t.Errorf("token: %d %v", code, err)
					}
				}
			})
		}
	}
}
