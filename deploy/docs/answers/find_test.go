package answers_test

import (
	"go/ast"
	"go/token"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// answer is an answer with an error: what a client sees of it.
type answer struct {
	section string
	status  int
	reason  string // reason of a Status, or code of OAuth
	message string // with … for what differs between requests
}

// Sections of the page.
const (
	kubernetes = "The Events API"
	queries    = "Questions below /query/v1"
	loki       = "Paths below /loki"
	tokens     = "Refused tokens"
	endpoint   = "The token endpoint"
	plain      = "Other paths of tokensvc"
	text       = "Plain text"
)

// statuses are the codes of HTTP by the names that package net/http has for them.
var statuses = func() map[string]int {
	all := map[string]int{}
	for code := http.StatusBadRequest; code <= http.StatusNetworkAuthenticationRequired; code++ {
		name := regexp.MustCompile(`[^A-Za-z]`).ReplaceAllString(http.StatusText(code), "")
		all["Status"+name] = code
	}
	return all
}()

// made is an error that a constructor of the apimachinery makes.
type made struct {
	status int
	reason string
	prefix string
	index  int // of the argument with the message; -1 if the prefix is all of it
}

var constructors = map[string]made{
	"NewAlreadyExists":              {409, "AlreadyExists", `… "…" already exists`, -1},
	"NewBadRequest":                 {400, "BadRequest", "", 0},
	"NewConflict":                   {409, "Conflict", `Operation cannot be fulfilled on … "…": `, 2},
	"NewForbidden":                  {403, "Forbidden", `… "…" is forbidden: `, 2},
	"NewGenerateNameConflict":       {409, "AlreadyExists", `… "…" already exists, the server was not able to generate a unique name for the object`, -1},
	"NewInternalError":              {500, "InternalError", "Internal error occurred: ", 0},
	"NewInvalid":                    {422, "Invalid", `… "…" is invalid: …`, -1},
	"NewNotFound":                   {404, "NotFound", `… "…" not found`, -1},
	"NewRequestEntityTooLargeError": {413, "RequestEntityTooLarge", "Request entity too large: ", 0},
	"NewResourceExpired":            {410, "Expired", "", 0},
	"NewServiceUnavailable":         {503, "ServiceUnavailable", "", 0},
	"NewTimeoutError":               {504, "Timeout", "Timeout: ", 0},
	"NewTooManyRequests":            {429, "TooManyRequests", "", 0},
	"NewUnauthorized":               {401, "Unauthorized", "", 0},
}

// generic are the messages that NewGenericServerResponse has for a status.
var generic = map[int]made{
	415: {415, "UnsupportedMediaType", "", 4},
	422: {422, "Invalid", "the server rejected our request due to an error in our request", -1},
}

// refusals are the constructors of package bearer, whose only argument is the reason.
var refusals = map[string]made{
	"invalidToken":   {401, "invalid_token", "", 0},
	"invalidRequest": {401, "invalid_request", "", 0},
	"noToken":        {401, "", "", 0},
	"unavailable":    {503, "", "", 0},
}

// finder finds the answers of the code of a folder.
type finder struct {
	constants map[string]string
	folder    string
	unknown   []string // constructors that are not in the tables
}

// section is where the page lists what the folder answers.
func (f *finder) section() string {
	switch path.Base(f.folder) {
	case "queries":
		return queries
	case "loki":
		return loki
	case "bearer":
		return tokens
	case "oauth":
		return endpoint
	}
	return kubernetes
}

// at returns the answers of a node.
func (f *finder) at(n ast.Node) []answer {
	switch n := n.(type) {
	case *ast.CallExpr:
		return f.call(n)
	case *ast.CompositeLit:
		return f.literal(n)
	case *ast.AssignStmt:
		return f.assignment(n)
	case *ast.CaseClause:
		return f.clause(n)
	}
	return nil
}

func (f *finder) call(n *ast.CallExpr) []answer {
	switch fun := n.Fun.(type) {
	case *ast.SelectorExpr:
		switch of, _ := fun.X.(*ast.Ident); {
		case of == nil:
		case of.Name == "apierrors":
			return f.constructed(fun.Sel.Name, n.Args)
		case of.Name == "http" && fun.Sel.Name == "Error" && len(n.Args) == 3:
			return []answer{{text, status(n.Args[2]), "", f.shape(n.Args[1])}}
		}
	case *ast.Ident:
		return f.helped(fun.Name, n.Args)
	}
	return nil
}

func (f *finder) constructed(name string, args []ast.Expr) []answer {
	m, known := constructors[name]
	if name == "NewGenericServerResponse" {
		m, known = generic[status(args[0])]
	}
	if !known {
		if strings.HasPrefix(name, "New") {
			f.unknown = append(f.unknown, name)
		}
		return nil
	}
	return f.of(m, args)
}

func (f *finder) of(m made, args []ast.Expr) []answer {
	message := m.prefix
	if m.index >= 0 {
		message += f.shape(args[m.index])
	}
	if f.section() == loki {
		m.reason = "" // the body is the message alone
	}
	return []answer{{f.section(), m.status, m.reason, message}}
}

// helped returns what a function of the folder makes.
func (f *finder) helped(name string, args []ast.Expr) []answer {
	m, refused := refusals[name]
	switch in := f.section(); {
	case in == queries && name == "badRequest" && f.shape(args[0]) == "":
		return f.of(made{400, "BadRequest", "", 1}, args)
	case in == queries && name == "badRequest":
		return f.of(made{400, "BadRequest", "query parameter …: ", 1}, args)
	case in == loki && name == "badRequest":
		return f.of(made{400, "", "", 0}, args)
	case in == tokens && refused:
		return f.of(m, args)
	case in == endpoint && name == "newFault":
		return []answer{{in, status(args[1]), f.shape(args[2]), f.shape(args[3])}}
	}
	return nil
}

// literal returns the answer of a Status, or of an error of package bearer, that is written out.
func (f *finder) literal(n *ast.CompositeLit) []answer {
	members := map[string]ast.Expr{}
	for _, e := range n.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				members[key.Name] = pair.Value
			}
		}
	}
	typed, _ := n.Type.(*ast.SelectorExpr)
	switch code := members["Code"]; {
	case typed != nil && typed.Sel.Name == "Status" && members["Message"] != nil && code != nil && status(code) != 0:
		return []answer{{f.section(), status(code), reason(members["Reason"]), f.shape(members["Message"])}}
	case f.section() == tokens && members["Scope"] != nil:
		return []answer{{tokens, status(members["Status"]), f.shape(code), f.shape(members["Reason"])}}
	}
	return nil
}

// assignment returns the answer of a Status whose reason and message are set together.
func (f *finder) assignment(n *ast.AssignStmt) []answer {
	if len(n.Lhs) != 2 || len(n.Rhs) != 2 {
		return nil
	}
	first, _ := n.Lhs[0].(*ast.SelectorExpr)
	second, _ := n.Lhs[1].(*ast.SelectorExpr)
	if first == nil || second == nil || first.Sel.Name != "Reason" || second.Sel.Name != "Message" {
		return nil
	}
	why := reason(n.Rhs[0])
	return []answer{{f.section(), statuses["Status"+why], why, f.shape(n.Rhs[1])}}
}

// clause returns the answer of tokensvc to a request that no handler has taken.
func (f *finder) clause(n *ast.CaseClause) []answer {
	if f.section() != endpoint || len(n.List) != 1 || len(n.Body) != 1 || status(n.List[0]) == 0 {
		return nil
	}
	set, ok := n.Body[0].(*ast.AssignStmt)
	if !ok {
		return nil
	}
	return []answer{{plain, status(n.List[0]), f.shape(set.Rhs[0]), ""}}
}

// status returns the code of a constant of package net/http, or 0.
func status(x ast.Expr) int {
	if of, ok := x.(*ast.SelectorExpr); ok {
		return statuses[of.Sel.Name]
	}
	return 0
}

// reason returns the word of a constant such as metav1.StatusReasonNotFound.
func reason(x ast.Expr) string {
	if of, ok := x.(*ast.SelectorExpr); ok {
		return strings.TrimPrefix(of.Sel.Name, "StatusReason")
	}
	return ""
}

var verbs = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z]`)

// shape returns a text as far as the code tells it.
func (f *finder) shape(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		literal, _ := strconv.Unquote(x.Value)
		return strings.ReplaceAll(verbs.ReplaceAllStringFunc(literal, shownVerb), "%%", "%")
	case *ast.BinaryExpr:
		if x.Op == token.ADD {
			return strings.ReplaceAll(f.shape(x.X)+f.shape(x.Y), "……", "…")
		}
	case *ast.CallExpr:
		if fun, ok := x.Fun.(*ast.SelectorExpr); ok && len(x.Args) > 0 {
			switch fun.Sel.Name {
			case "Sprintf", "Errorf", "New":
				return f.shape(x.Args[0])
			}
		}
	case *ast.Ident:
		return f.constant(x.Name)
	case *ast.SelectorExpr:
		return f.constant(x.Sel.Name)
	}
	return "…"
}

func shownVerb(verb string) string {
	if strings.HasSuffix(verb, "q") {
		return `"…"`
	}
	return "…"
}

func (f *finder) constant(name string) string {
	if value, ok := f.constants[name]; ok {
		return value
	}
	return "…"
}
