package codec

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tidings.example/eventsvc/internal/codec/request"
)

// clause is one alternative of an Accept header, RFC 9110 section 12.5.1.
type clause struct {
	mediaType string // type/subtype, either may be *
	quality   float64
	params    map[string]string
}

// maxClauses bounds the work for one header.
const maxClauses = 64

// parseAccept returns the clauses of a header in the order of preference: by
// quality, then by fewer wildcards, then as the client wrote them. It ignores
// invalid clauses and those with quality 0.
func parseAccept(header string) []clause {
	var clauses []clause
	for part := range strings.SplitSeq(header, ",") {
		if len(clauses) == maxClauses {
			break
		}
		mediaType, rest, _ := strings.Cut(part, ";")
		c := clause{mediaType: strings.ToLower(strings.TrimSpace(mediaType)), quality: 1}
		if c.mediaType == "*" {
			c.mediaType = "*/*"
		}
		c.parseParams(rest)
		if c.quality > 0 && strings.Contains(c.mediaType, "/") {
			clauses = append(clauses, c)
		}
	}
	slices.SortStableFunc(clauses, func(a, b clause) int {
		return cmp.Or(cmp.Compare(b.quality, a.quality), cmp.Compare(a.wildcards(), b.wildcards()))
	})
	return clauses
}

func (c *clause) parseParams(rest string) {
	for rest != "" {
		var param string
		param, rest, _ = strings.Cut(rest, ";")
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch name = strings.TrimSpace(name); name {
		case "":
		case "q":
			// An invalid q is ignored.
			if q, err := strconv.ParseFloat(value, 64); err == nil && q <= 1 {
				c.quality = q
			}
		default:
			if c.params == nil {
				c.params = map[string]string{}
			}
			c.params[name] = value
		}
	}
}

func (c *clause) wildcards() int { return strings.Count(c.mediaType, "*") }

func (c *clause) accepts(mediaType string) bool {
	if c.mediaType == mediaType || c.mediaType == "*/*" {
		return true
	}
	group, isGroup := strings.CutSuffix(c.mediaType, "*")
	return isGroup && strings.HasPrefix(mediaType, group)
}

// format returns the format that the clause asks for in a medium, and false if the
// scope does not have it. Unknown parameters are ignored.
func (c *clause) format(media request.Media, s Scope) (Format, bool) {
	f := Format{Media: media, Pretty: c.params["pretty"] == "1"}
	if stream := c.params["stream"]; stream != "" && stream != "watch" {
		return f, false
	}
	if version := c.params["sv"]; version != "" && version != metaVersion {
		return f, false
	}
	kind, group, version := c.params["as"], c.params["g"], c.params["v"]
	if kind == "" && group == "" && version == "" {
		return f, true
	}
	if s == ScopeOther || group != metaGroup {
		return f, false
	}
	switch kind {
	case "Table":
		f.As, f.TableVersion = Table, version
		return f, media != request.Protobuf && (version == metaVersion || version == "v1beta1")
	case partialKind, partialKind + "List":
		f.As = Partial
		return f, version == metaVersion
	}
	return f, false
}
