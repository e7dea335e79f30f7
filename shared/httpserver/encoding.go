package httpserver

import (
	"net/http"
	"strconv"
	"strings"
)

// AcceptsGzip reports whether a client names gzip with a weight above 0 (RFC 9110 section 12.5.3). A client that names
// only other codings, or "*", gets the answer as it is, which is always allowed.
func AcceptsGzip(h http.Header) bool {
	for clause := range strings.SplitSeq(h.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(clause, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		if weight = strings.TrimSpace(weight); weight == "" {
			return true
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ToLower(weight), "q="), 64)
		return err == nil && q > 0
	}
	return false
}
