package issuers_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tidings.example/shared/bearer"
	"tidings.example/shared/certtest"
	"tidings.example/shared/cli"
	"tidings.example/shared/issuers"
	"tidings.example/shared/waittest"
)

// Issuer is an entry of the file in these tests.
type Issuer struct {
	Issuer           string `yaml:"issuer"`
	bearer.KeySource `yaml:",inline"`
	Audiences        []string     `yaml:"audiences"`
	MaxTokenLife     cli.Duration `yaml:"maxTokenLife"`
}

// From implements [issuers.Settings].
func (i Issuer) From() (string, bearer.KeySource) { return i.Issuer, i.KeySource }

func parse(data []byte) ([]Issuer, error) { return issuers.Parse[Issuer](data, "issuer and others") }

// origin is an issuer that publishes its key, and counts how often that is fetched.
type origin struct {
	*httptest.Server
	key     *rsa.PrivateKey
	fetches atomic.Int32
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func newOrigin(t *testing.T) *origin {
	t.Helper()
	key := certtest.RSA(t)
	o := &origin{key: key}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, o.URL, o.URL+"/jwks")
		case "/jwks", "/moved":
			o.fetches.Add(1)
			fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"k","n":%q,"e":"AQAB"}]}`, encode(key.N.Bytes()))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(o.Close)
	return o
}

// token returns a token for an audience that lives for an hour.
func (o *origin) token(audience string) string {
	now := time.Now().Unix()
	input := encode([]byte(`{"alg":"RS256","kid":"k"}`)) + "." +
		encode(fmt.Appendf(nil, `{"iss":%q,"sub":"me","aud":[%q],"iat":%d,"exp":%d}`, o.URL, audience, now, now+3600))
	sum := sha256.Sum256([]byte(input))
	signature, err := rsa.SignPKCS1v15(nil, o.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return input + "." + encode(signature)
}

// entry returns an entry of the file.
func (o *origin) entry(more string) string {
	return fmt.Sprintf("- {issuer: %q, jwksURL: %q%s}\n", o.URL, o.URL+"/jwks", more)
}

// bench are the issuers of a file that a test changes.
type bench struct {
	*issuers.Live[Issuer]
	path string
	log  lines
	reg  *prometheus.Registry
}

// lines collects a log that several goroutines write to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func open(t *testing.T, content string, fixed ...Issuer) (*bench, error) {
	t.Helper()
	b := &bench{path: filepath.Join(t.TempDir(), "issuers.yaml"), reg: prometheus.NewRegistry()}
	b.write(t, content)
	log := slog.New(slog.NewTextHandler(&b.log, nil))
	var err error
	b.Live, err = issuers.New(issuers.Config[Issuer]{
		Fixed: fixed, Path: b.path, Setting: "--file", Parse: parse, Log: log, Registry: b.reg,
		Keys: func(i Issuer) (*bearer.IssuerKeys, error) {
			return bearer.NewIssuerKeys(i.Issuer, i.KeySource, bearer.JWKSConfig{Log: log, Registry: b.reg})
		},
		Verifier: func(i Issuer, keys *bearer.IssuerKeys) (*bearer.Verifier, error) {
			return bearer.New(bearer.Config{
				Issuer: i.Issuer, Audience: i.Audiences, Keys: keys, Algorithms: i.Algorithms, MaxLife: time.Duration(i.MaxTokenLife), Registry: b.reg,
			})
		},
		Added: func(i Issuer) { log.Info("added " + i.Issuer) },
	})
	return b, err
}

// write replaces the file at once, because it may be read at any time.
func (b *bench) write(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(b.path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(b.path+".new", b.path); err != nil {
		t.Fatal(err)
	}
}

// metric returns the metric with a label value, or without labels, and whether it exists.
func (b *bench) metric(t *testing.T, name, label string) (float64, bool) {
	t.Helper()
	families, err := b.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			matches := len(m.GetLabel()) == 0 && label == ""
			for _, l := range m.GetLabel() {
				matches = matches || l.GetValue() == label
			}
			if f.GetName() == name && matches {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue(), true
			}
		}
	}
	return 0, false
}

// verify returns the reason of the refusal, or ok.
func (b *bench) verify(ctx context.Context, token string) string {
	for {
		now := b.Current()
		_, err := now.Verify(ctx, token)
		switch {
		case b.Current() != now:
		case err != nil:
			return err.Error()
		default:
			return "ok"
		}
	}
}

// running returns how many key sets are kept fresh in this process.
func running() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "bearer.(*IssuerKeys).Run(")
}

// TestReload goes through versions of a file. A client of an issuer whose entry stays is never refused, and its keys
// are fetched once.
func TestReload(t *testing.T) { // not parallel, because of running
	stays, other, slow := newOrigin(t), newOrigin(t), httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(slow.Close)
	first := stays.entry("")
	b, err := open(t, first)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var tasks sync.WaitGroup
	tasks.Go(func() { _ = b.Run(ctx) })
	good := stays.token("us")
	var verified atomic.Int32
	tasks.Go(func() {
		for ctx.Err() == nil {
			if got := b.verify(t.Context(), good); got != "ok" {
				t.Errorf("the good client is refused: %s", got)
			}
			verified.Add(1)
		}
	})
	forUs, forThem := other.token("us"), other.token("them")
	verifier := b.Current().Find(stays.URL).Verifier
	for _, step := range []struct {
		name, content  string
		forUs, forThem string // outcome of tokens of the other issuer
		fetches        int32  // of its keys so far
		running        int    // key sets that are kept fresh
		good           float64
		log            string // a line that must be there once more
	}{
		{"not trusted yet", first, "other issuer", "other issuer", 0, 1, 1, ""},
		{"added", first + other.entry(""), "ok", "ok", 1, 2, 1, "a new version of a file is in force"},
		{"no YAML", "- {", "ok", "ok", 1, 2, 0, "a file is bad"},
		{"the same mistake", "- {", "ok", "ok", 1, 2, 0, ""},
		{"truncated", "", "ok", "ok", 1, 2, 0, "the file is empty"},
		{"one entry is bad", first + other.entry(", audiences: [them]") + "- {issuer: x}", "ok", "ok", 1, 2, 0, "entry 3: "},
		{"listed twice", first + other.entry("") + other.entry(""), "ok", "ok", 1, 2, 0, "is listed twice"},
		{"mended, with an audience, in another order", other.entry(", audiences: [them]") + first, "other audience", "ok", 1, 2, 1, "a new version of a file is in force"},
		{"a shorter life", first + other.entry(", maxTokenLife: 59m"), "lives too long", "lives too long", 1, 2, 1, ""},
		{"a longer life and more algorithms", first + other.entry(", maxTokenLife: 1h, algorithms: [ES256, RS256]"), "ok", "ok", 1, 2, 1, ""},
		{"back to the default", first + other.entry(""), "ok", "ok", 1, 2, 1, ""},
		{"keys from another URL", first + strings.Replace(other.entry(""), "/jwks", "/moved", 1), "ok", "ok", 2, 2, 1, ""},
		{"another algorithm", first + other.entry(", algorithms: [ES256]"), "alg not allowed", "alg not allowed", -1, 2, 1, ""},
		{"an issuer without metadata", first + fmt.Sprintf("- {issuer: %q}", slow.URL), "other issuer", "other issuer", -1, 2, 1, ""},
		{"removed", first, "other issuer", "other issuer", -1, 1, 1, ""},
	} {
		lines := b.log.count(step.log)
		b.write(t, step.content)
		b.Reload()
		for range 2 { // the second time from the cache
			if us, them := b.verify(t.Context(), forUs), b.verify(t.Context(), forThem); us != step.forUs || them != step.forThem {
				t.Errorf("%s: %q and %q, want %q and %q", step.name, us, them, step.forUs, step.forThem)
			}
		}
		if n := other.fetches.Load(); n != step.fetches && step.fetches >= 0 {
			t.Errorf("%s: the keys were fetched %d times, want %d", step.name, n, step.fetches)
		}
		if value, _ := b.metric(t, "issuers_file_good", ""); value != step.good {
			t.Errorf("%s: good is %v", step.name, value)
		}
		if n := b.log.count(step.log); step.log != "" && n != lines+1 {
			t.Errorf("%s: %q is logged %d times more", step.name, step.log, n-lines)
		}
		if b.Current().Find(stays.URL).Verifier != verifier {
			t.Errorf("%s: the issuer that stays has another verifier", step.name)
		}
		waittest.Until(t, fmt.Sprintf("%s: %d key sets are kept fresh", step.name, step.running), func() bool { return running() == step.running })
		before := verified.Load()
		waittest.Until(t, "the good client goes on", func() bool { return verified.Load() > before })
	}
	for url, want := range map[string]bool{stays.URL + "/jwks": true, other.URL + "/jwks": false, other.URL + "/moved": false} {
		waittest.Until(t, fmt.Sprintf("metrics of %s: %v", url, want), func() bool {
			_, newest := b.metric(t, "jwks_last_success_timestamp_seconds", url)
			_, fetches := b.metric(t, "jwks_fetches_total", url)
			return newest == want && fetches == want
		})
	}
	if n := stays.fetches.Load(); n != 1 {
		t.Errorf("the keys of the issuer that stays were fetched %d times", n)
	}
	if !b.Current().Withdrawn(t.Context(), &bearer.Caller{Issuer: other.URL, KeyID: "k"}) {
		t.Error("a caller of the removed issuer is not withdrawn")
	}
	if n := b.log.count("added " + stays.URL); n != 1 {
		t.Errorf("the issuer that stays was added %d times", n)
	}
	if n, _ := b.metric(t, "issuers_reloads_total", "error"); n != 4 {
		t.Errorf("%v bad versions are counted, want 4", n)
	}
	cancel()
	waittest.Join(t, &tasks)
	if n := running(); n != 0 {
		t.Errorf("%d key sets are kept fresh after the end", n)
	}
}

// TestMistakeElsewhere: a version of the file that names a file that is missing comes into force as soon as that is
// there. What is good in it is set up once, although it is tried again and again.
func TestMistakeElsewhere(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	set := fmt.Sprintf(`{"keys":[{"kty":"RSA","kid":"k","n":%q,"e":"AQAB"}]}`, encode(o.key.N.Bytes()))
	dir := t.TempDir()
	there, later := filepath.Join(dir, "there.json"), filepath.Join(dir, "later.json")
	if err := os.WriteFile(there, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := open(t, "[]", Issuer{Issuer: "https://fixed.example"})
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, fmt.Sprintf("- {issuer: there, jwksFile: %q}\n- {issuer: %q, jwksFile: %q}\n", there, o.URL, later))
	for range 3 {
		b.Reload()
	}
	if got := b.verify(t.Context(), o.token("us")); got != "other issuer" {
		t.Errorf("before the file is there: %s", got)
	}
	if err := os.WriteFile(later, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Reload()
	if got := b.verify(t.Context(), o.token("us")); got != "ok" {
		t.Errorf("with the file: %s", got)
	}
	if read, bad := b.log.count("keys read"), b.log.count("level=ERROR"); read != 2 || bad != 1 {
		t.Errorf("%d times keys read and %d errors, want 2 and 1:\n%s", read, bad, b.log.text.String())
	}
}

// TestBadStart: mistakes at the start are errors that name the setting, the file and the entry.
func TestBadStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ content, want string }{
		"unknown setting":        {"- {issuer: a, audience: b}", "field audience not found (there are issuer and others)"},
		"no list":                {"issuer: a", "into a list of issuers"},
		"no issuer":              {"- 7", "into an issuer"},
		"empty":                  {"# nothing\n", "the file is empty"},
		"that of a flag":         {"- {issuer: 'https://fixed.example'}", "entry 1: issuer \"https://fixed.example\" is trusted by another setting already"},
		"bad in the second line": {"- {issuer: 'https://a.example'}\n- {issuer: 'https://b.example', maxTokenLife: -1s}", "entry 2: bearer: the maximum life"},
	} {
		_, err := open(t, tc.content, Issuer{Issuer: "https://fixed.example"})
		if err == nil || !strings.HasPrefix(err.Error(), "--file: /") || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if _, err := open(t, "[]", Issuer{}); err == nil || strings.Contains(err.Error(), "--file") {
		t.Errorf("a fixed issuer without a name: %v", err)
	}
}
