package httpio

import (
	"strconv"
	"strings"
)

// Preferred returns the offer for the clause of an Accept header with the greatest weight,
// and of those the first (RFC 9110 section 12.5.1). Offers are by media type, in lower
// case, wildcards included. It returns "" if the client accepts none.
func Preferred(accept string, offers map[string]string) (offer string) {
	best := 0.0
	for clause := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(clause, ";")
		weight := 1.0
		for param := range strings.SplitSeq(params, ";") {
			if value, ok := strings.CutPrefix(strings.TrimSpace(param), "q="); ok {
				weight, _ = strconv.ParseFloat(value, 64)
			}
		}
		if offered := offers[strings.ToLower(strings.TrimSpace(name))]; offered != "" && weight > best {
			offer, best = offered, weight
		}
	}
	return offer
}
