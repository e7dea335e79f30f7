package policy_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidings.example/eventsvc/internal/policy"
	"tidings.example/shared/bearer"
	"tidings.example/shared/randtest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	first  = "https://issuer.example"
	second = "https://other.example"
)

var options = policy.Options{Issuers: []string{first, second}, Default: first, Aliases: map[string]string{"cluster": second}, Claims: map[string][]string{first: {"groups"}, second: {"groups", "team"}}}

func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse([]byte(text), options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const example = `
roles:
  - name: build-writer
    rules:
      - verbs: [create, patch]
        namespaces: [build, ci-*]
      - verbs: [get]
        namespaces: ["*"]
bindings:
  - role: build-writer
    subjects:
      - clientID: build-server
      - {claim: groups, value: builders, issuer: "*"}
  - role: events:read
    namespaces: [team-a-*, shared]
    subjects:
      - scope: team-a
      - {issuer: https://other.example, clientID: dashboard}
      - {issuer: cluster, clientID: "system:serviceaccount:shop:viewer"}
  - role: events:admin
    namespaces: [sandbox]
    subjects:
      - anyone: true
`

func TestDecide(t *testing.T) {
	t.Parallel()
	p := parse(t, example)
	type caller = bearer.Caller
	build := &caller{Issuer: first, ClientID: "build-server"}
	builder := &caller{Issuer: second, ClientID: "x", Claims: map[string][]string{"groups": {"a", "builders"}}}
	team := &caller{Issuer: first, ClientID: "y", Scopes: []string{"openid", "team-a"}}
	dashboard := &caller{Issuer: second, ClientID: "dashboard"}
	scoped := func(scopes ...string) *caller { return &caller{Issuer: first, ClientID: "z", Scopes: scopes} }
	for _, c := range []struct {
		who       string
		caller    *caller
		verbs     string
		namespace string
		want      bool
	}{
		{"client", build, "create", "build", true},
		{"client, pattern", build, "patch", "ci-1", true},
		{"client, only the prefix", build, "patch", "ci-", true},
		{"client, prefix without dash", build, "patch", "ci", false},
		{"client, other verb", build, "update", "build", false},
		{"client, other namespace", build, "create", "builder", false},
		{"client, second rule", build, "get", "anything", true},
		{"client, second rule across all", build, "get", "", true},
		{"a prefix is no grant across all", build, "create", "", false},
		{"client id of another issuer", &caller{Issuer: second, ClientID: "build-server"}, "create", "build", false},
		{"client id as subject only", &caller{Issuer: first, ClientID: "q", Subject: "build-server"}, "create", "build", false},
		{"claim of any issuer", builder, "create", "ci-2", true},
		{"claim value that is another", &caller{Issuer: first, Claims: map[string][]string{"groups": {"Builders"}}}, "create", "ci-2", false},
		{"claim value as scope", scoped("builders"), "create", "ci-2", false},
		{"scope, limited by the binding", team, "get,list,watch", "team-a-1", true},
		{"scope, outside the limit", team, "list", "team-b", false},
		{"scope, across all", team, "list", "", false},
		{"scope, verb the role has not", team, "create", "team-a-1", false},
		{"named issuer", dashboard, "watch", "shared", true},
		{"named issuer, another's", &caller{Issuer: first, ClientID: "dashboard"}, "watch", "shared", false},
		{"issuer by its alias", &caller{Issuer: second, ClientID: "system:serviceaccount:shop:viewer"}, "watch", "shared", true},
		{"issuer that calls itself the alias", &caller{Issuer: "cluster", ClientID: "system:serviceaccount:shop:viewer"}, "watch", "shared", false},
		{"anyone", &caller{Issuer: first, ClientID: "nobody"}, "deletecollection", "sandbox", true},
		{"anyone is of the first issuer", &caller{Issuer: second, ClientID: "nobody"}, "get", "sandbox", false},
		{"anyone of no issuer", &caller{Issuer: "https://evil.example"}, "get", "sandbox", false},
		{"N61 built-in read", scoped("events:read"), "get,list,watch", "", true},
		{"N61 built-in read writes", scoped("events:read"), "create", "x", false},
		{"N61 built-in write", scoped("events:write"), "create,update,patch", "x", true},
		{"N61 built-in write reads", scoped("events:write"), "get", "x", false},
		{"N61 built-in write deletes", scoped("events:write"), "delete", "x", false},
		{"N61 both", scoped("events:write", "events:read"), "list", "", true},
		{"N61 built-in admin", scoped("events:admin"), "get,list,watch,create,update,patch,delete,deletecollection", "", true},
		{"N61 prefix of a scope", scoped("events:rea", "events"), "get", "x", false},
		{"N61 longer than a scope", scoped("events:read2", "events:read:x"), "get", "x", false},
		{"N61 other case", scoped("Events:Read"), "get", "x", false},
		{"N61 no scope", scoped(), "get", "x", false},
		{"built-in scope of another issuer", &caller{Issuer: second, Scopes: []string{"events:admin"}}, "get", "x", false},
	} {
		for verb := range strings.SplitSeq(c.verbs, ",") {
			v, err := policy.ParseVerb(verb)
			if err != nil {
				t.Fatal(err)
			}
			d := p.Decide(c.caller, v, c.namespace)
			if d.Allowed != c.want || d.Rule == "" {
				t.Errorf("%s: %s in %q: %+v", c.who, verb, c.namespace, d)
			}
		}
	}
}

func TestExplanations(t *testing.T) {
	t.Parallel()
	p := parse(t, example)
	build := &bearer.Caller{Issuer: first, ClientID: "build-server", Scopes: []string{"events:read"}}
	for _, c := range []struct {
		verb      policy.Verb
		namespace string
		want      string
	}{
		{policy.Create, "build", `role "build-writer", bound in line 10, rule 1`},
		{policy.Get, "x", `role "build-writer", bound in line 10, rule 2`},
		{policy.List, "", `the token's scope "events:read"`},
		{policy.Delete, "x", `no rule of the policy allows this client to delete in the namespace "x", nor has its token the scope "events:admin"`},
		{policy.Update, "", `no rule of the policy allows this client to update across all namespaces (namespaces: ["*"]), nor has its token the scope "events:write"`},
	} {
		if got := p.Decide(build, c.verb, c.namespace).Rule; got != c.want {
			t.Errorf("%s %q:\n got %s\nwant %s", c.verb, c.namespace, got, c.want)
		}
	}
	without := parse(t, "builtinScopes: false")
	if d := without.Decide(build, policy.Get, "x"); d.Allowed || strings.Contains(d.Rule, "scope") {
		t.Errorf("without built-in scopes: %+v", d)
	}
	if without.Scope(policy.Get) != "" || p.Scope(policy.Get) != policy.RoleRead {
		t.Error("the scope to ask for is wrong")
	}
}

const clustered = `
roles:
  - name: mirror
    rules:
      - verbs: [get, create, update]
        namespaces: ["*"]
      - verbs: [list]
        namespaces: [shop]
        clusters: [eu-1, ""]
bindings:
  - role: mirror
    clusters: [eu-*]
    subjects: [{clientID: mirror-eu}]
  - role: mirror
    clusters: [us]
    subjects: [{clientID: mirror-us}]
  - role: events:read
    clusters: [us]
    subjects: [{clientID: both}]
  - role: events:read
    namespaces: [shop]
    clusters: [ap]
    subjects: [{clientID: both}]
`

// TestClusters: a rule is for events of the clusters that it and its binding name; several rules add up.
func TestClusters(t *testing.T) {
	t.Parallel()
	p := parse(t, clustered)
	for _, c := range []struct {
		client, verb, namespace string
		want                    []string // nil: refused
		rule                    string
	}{
		{"mirror-eu", "create", "", []string{"eu-*"}, `role "mirror", bound in line 11, rule 1, for events of the clusters ["eu-*"]`},
		{"mirror-eu", "list", "shop", []string{"eu-1"}, `role "mirror", bound in line 11, rule 2, for events of the clusters ["eu-1"]`},
		{"mirror-us", "update", "x", []string{"us"}, `role "mirror", bound in line 14, rule 1, for events of the clusters ["us"]`},
		{"mirror-us", "list", "shop", nil, ""}, // eu-1 and us have nothing in common
		{"both", "get", "", []string{"us"}, ""},
		{"both", "get", "shop", []string{"ap", "us"}, `role "events:read", bound in line 17, for events of the clusters ["us"]; role "events:read", bound in line 20, for events of the clusters ["ap"]`},
	} {
		v, err := policy.ParseVerb(c.verb)
		if err != nil {
			t.Fatal(err)
		}
		d := p.Decide(&bearer.Caller{Issuer: first, ClientID: c.client}, v, c.namespace)
		if d.Allowed != (c.want != nil) || !slices.Equal(d.Clusters, c.want) || c.rule != "" && d.Rule != c.rule {
			t.Errorf("%s, %s in %q: %+v", c.client, c.verb, c.namespace, d)
		}
	}
	both := &bearer.Caller{Issuer: first, ClientID: "both", Scopes: []string{"events:read"}}
	if d := p.Decide(both, policy.Get, "shop"); !d.Clusters.All() || d.Rule != `the token's scope "events:read"` {
		t.Errorf("a rule without clusters adds nothing: %+v", d)
	}
	const wanted = `no rule allows this for events of the cluster "eu-1", only these do for others: role "events:read", bound in line 17, for events of the clusters ["us"]`
	if d := p.Decide(&bearer.Caller{Issuer: first, ClientID: "both"}, policy.Get, "").Of(new("eu-1")); d.Allowed || d.Rule != wanted {
		t.Errorf("%+v", d)
	}
}

// TestRules: what reviews list is exactly what is decided, for random policies.
func TestRules(t *testing.T) {
	t.Parallel()
	random := randtest.New(t)
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	patterns := func() string {
		return pick(`["*"]`, `[a]`, `[a-*]`, `[a-b-*, c]`, `[a-b]`, `[c, "*"]`, `[a*]`)
	}
	clusters := func() string {
		return pick("", "", `, clusters: ["*"]`, `, clusters: [a]`, `, clusters: [""]`, `, clusters: [a-*, ""]`, `, clusters: [a-b, c]`, `, clusters: [a*]`)
	}
	for range 300 {
		var text strings.Builder
		text.WriteString("builtinScopes: " + pick("true", "false") + "\nroles:\n")
		for _, name := range []string{"r", "s"} {
			text.WriteString("- name: " + name + "\n  rules:\n")
			for range 1 + random.IntN(2) {
				text.WriteString("  - {verbs: [" + pick("get", "list, get", "create", "'*'") + "], namespaces: " + patterns() + clusters() + "}\n")
			}
		}
		text.WriteString("bindings:\n")
		for range 3 {
			text.WriteString("- {role: " + pick("r", "s", "'events:read'") + ", subjects: [{" + pick("clientID: me", "scope: x", "anyone: true", "clientID: you") + "}]")
			if random.IntN(2) == 0 {
				text.WriteString(", namespaces: " + patterns())
			}
			text.WriteString(clusters() + "}\n")
		}
		p := parse(t, text.String())
		me := &bearer.Caller{Issuer: first, ClientID: "me", Scopes: []string{"x", "events:write"}[:random.IntN(3)]}
		for _, namespace := range []string{"", "a", "a-", "a-b", "a-b-c", "c", "d"} {
			for v := policy.Get; v != 0; v <<= 1 {
				d, any := p.Decide(me, v, namespace), false
				for _, cluster := range []string{"", "a", "a-", "a-b", "a-b-c", "c", "d"} {
					listed := false
					for _, r := range p.Rules(me) {
						listed = listed || r.Verbs&v != 0 && r.Namespaces.Match(namespace) && r.Clusters.Match(cluster)
					}
					if decided := d.Clusters.Match(cluster); decided != listed || decided != d.Of(&cluster).Allowed {
						t.Fatalf("%s in %q of %q: decided %v, listed %v by\n%s", v, namespace, cluster, decided, listed, text.String())
					}
					any = any || listed
				}
				if d.Allowed != any || d.Of(nil).Allowed != any {
					t.Fatalf("%s in %q: decided %+v by\n%s", v, namespace, d, text.String())
				}
			}
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	d := policy.AllowAll().Decide(&bearer.Caller{}, policy.DeleteCollection, "")
	if !d.Allowed || !strings.Contains(d.Rule, "no policy file") {
		t.Errorf("%+v", d)
	}
}

// TestBadFiles: every mistake is an error that names line, field and remedy.
// The expected texts are in testdata.
func TestBadFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = policy.Parse(data, options)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		golden := strings.TrimSuffix(name, ".yaml") + ".txt"
		if *update {
			if err := os.WriteFile(golden, []byte(err.Error()+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, readErr := os.ReadFile(golden)
		if readErr != nil {
			t.Fatal(readErr)
		}
		if diff := cmp.Diff(string(want), err.Error()+"\n"); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	if _, err := policy.Parse(make([]byte, 1<<20+1), options); err == nil {
		t.Error("a file of any size is read")
	}
	const anyIssuer = "bindings:\n- {role: 'events:read', subjects: [{clientID: a}]}"
	if _, err := policy.Parse([]byte(anyIssuer), policy.Options{Issuers: options.Issuers}); err == nil || !strings.Contains(err.Error(), "name the issuer of the subject") {
		t.Errorf("no issuer is the default, and a subject names none: %v", err)
	}
}

// TestDecideIsTheSameEveryTime: a caller with several claims gets one decision, whatever order its token, the file or
// chance has them in, so that no watch ends because its decision is made again.
func TestDecideIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	o := policy.Options{Issuers: []string{first}, Default: first, Claims: map[string][]string{first: {"groups", "team", "site", "dept"}}}
	bindings := []string{
		"- {role: 'events:read', clusters: [eu-*], subjects: [{claim: groups, value: a}]}",
		"- {role: 'events:read', clusters: [eu-1, us-1], subjects: [{claim: team, value: b}]}",
		"- {role: 'events:read', clusters: [us-1, eu-*], subjects: [{claim: site, value: c}]}",
		"- {role: 'events:read', clusters: [eu-1], subjects: [{claim: dept, value: d}, {claim: groups, value: e}]}",
	}
	for range 20 {
		p, err := policy.Parse([]byte("bindings:\n"+strings.Join(bindings, "\n")), o)
		if err != nil {
			t.Fatal(err)
		}
		one := &bearer.Caller{Issuer: first, Claims: map[string][]string{"groups": {"a", "e"}, "team": {"b"}, "site": {"c"}, "dept": {"d"}}}
		other := &bearer.Caller{Issuer: first, Claims: map[string][]string{"groups": {"e", "a"}, "team": {"b"}, "site": {"c"}, "dept": {"d"}}}
		want, rules := p.Decide(one, policy.List, "shop"), p.Rules(one)
		if diff := cmp.Diff([]string{"eu-*", "us-1"}, []string(want.Clusters)); diff != "" {
			t.Fatalf("%q (-want +got)\n%s", bindings, diff)
		}
		for range 50 {
			if diff := cmp.Diff(want, p.Decide(one, policy.List, "shop")); diff != "" {
				t.Fatalf("another time: %s", diff)
			}
			if diff := cmp.Diff(rules, p.Rules(one)); diff != "" {
				t.Fatalf("another time: %s", diff)
			}
			if diff := cmp.Diff(want.Clusters, p.Decide(other, policy.List, "shop").Clusters); diff != "" {
				t.Fatalf("a token with its values in another order: %s", diff)
			}
		}
		bindings = append(bindings[1:], bindings[0])
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	p, limited := parse(t, example), parse(t, clustered)
	callers := []*bearer.Caller{
		{Issuer: first, ClientID: "build-server"},
		{Issuer: first, ClientID: "y", Scopes: []string{"openid", "team-a"}},
		{Issuer: second, ClientID: "x", Claims: map[string][]string{"groups": {"builders"}}},
		{Issuer: first, ClientID: "mirror-eu"},
	}
	if n := testing.AllocsPerRun(100, func() {
		p.Decide(callers[0], policy.Create, "ci-1")
		p.Decide(callers[1], policy.List, "team-a-1")
		p.Decide(callers[2], policy.Create, "ci-1")
		limited.Decide(callers[3], policy.Create, "ci-1").Clusters.Match("eu-1")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecide(b *testing.B) {
	p := parse(b, example)
	c := &bearer.Caller{Issuer: first, ClientID: "y", Scopes: []string{"openid", "team-a"}}
	b.ReportAllocs()
	for b.Loop() {
		if !p.Decide(c, policy.List, "team-a-1").Allowed {
			b.Fatal("refused")
		}
	}
}

// FuzzPolicy: no file makes the parser panic, and none that is refused yields a
// policy.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(example))
	f.Add([]byte(clustered))
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	ordinary := &bearer.Caller{Issuer: first, ClientID: "mirror-eu", Scopes: []string{"a", "b", "team-a"}}
	stranger := &bearer.Caller{Issuer: "https://evil.example", ClientID: "build-server", Scopes: []string{"events:admin"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := policy.Parse(data, options)
		if err != nil {
			if p != nil {
				t.Errorf("refused, and yet there is a policy: %v", err)
			}
			return
		}
		for v := policy.Get; v != 0; v <<= 1 {
			if p.Decide(stranger, v, "a").Allowed || p.Decide(stranger, v, "").Allowed {
				t.Errorf("a caller of an unknown issuer may %s", v)
			}
			if d := p.Decide(ordinary, v, "shop"); d.Allowed != (len(d.Clusters) > 0) || !slices.IsSorted(d.Clusters) {
				t.Errorf("%s: %+v", v, d)
			}
		}
	})
}

// TestUnreachable: what allows nothing is named with its line and the reason, and nothing else is.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	const role = "roles: [{name: r, rules: [{verbs: [get], namespaces: [team-*]}, {verbs: [create], namespaces: [shop]}]}]\n"
	for text, want := range map[string][]string{
		"{}": nil,
		role: {`line 1: roles: no binding gives role "r" to anybody: add one, or take the role out`},
		role + "bindings: [{role: r, subjects: [{clientID: a}]}]":                          nil,
		role + "bindings: [{role: r, namespaces: [team-a, shop], subjects: [{scope: a}]}]": nil,
		role + "bindings: [{role: r, namespaces: ['*'], subjects: [{scope: a}]}]":          nil,
		role + "bindings: [{role: r, namespaces: [team-a], subjects: [{scope: a}]}]": {
			`line 1: roles.rules: rule 2 of role "r" allows nothing: no binding gives the role in any of its namespaces and clusters`,
		},
		role + "bindings:\n- {role: r, namespaces: [team-a], subjects: [{scope: a}]}\n- {role: r, namespaces: [shop], subjects: [{scope: b}]}": nil,
		role + "bindings: [{role: r, namespaces: [mail, teams], subjects: [{scope: a}]}]": {
			`line 2: bindings: the binding allows nothing: no rule of role "r" is for any of its namespaces and clusters`,
		},
		"roles: [{name: r, rules: [{verbs: [get], namespaces: ['*'], clusters: [eu-*, '']}]}]\n" +
			"bindings:\n- {role: r, clusters: [us], subjects: [{scope: a}]}\n- {role: r, clusters: [eu-1], subjects: [{scope: b}]}": {
			`line 3: bindings: the binding allows nothing: no rule of role "r" is for any of its namespaces and clusters`,
		},
		"roles: [{name: r, rules: [{verbs: [get], namespaces: ['*'], clusters: [a]}, {verbs: [get], namespaces: ['*']}, {verbs: [get], namespaces: [x], clusters: [b]}]}]\n" +
			"bindings: [{role: r, subjects: [{scope: a}]}]": {
			`line 1: roles.rules: rule 3 of role "r" can never decide: rule 2 before it allows all of it`,
		},
		"bindings: [{role: 'events:read', namespaces: [a], subjects: [{scope: a}]}]": nil,
		"roles: [{name: r, rules: [{verbs: [get, list], namespaces: [team-*]}, {verbs: [get], namespaces: [team-a, team-b-*]}, {verbs: [get], namespaces: ['*']}]}]\n" +
			"bindings: [{role: r, subjects: [{clientID: a}]}]": {
			`line 1: roles.rules: rule 2 of role "r" can never decide: rule 1 before it allows all of it`,
		},
	} {
		p, err := policy.Parse([]byte(text), options)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := p.Unreachable(); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", text, got, want)
		}
	}
}
