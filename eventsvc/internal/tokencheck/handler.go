package tokencheck

import (
	"encoding/json"
	"net/http"
)

// maxRequest is more than a token and names need.
const maxRequest = 64 << 10

// ServeHTTP checks the token in the body, a [Request], and answers with a [Report].
func (c *Checker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&q); err != nil {
		http.Error(w, "the body is no request to check a token: "+err.Error(), http.StatusBadRequest)
		return
	}
	report, err := c.Check(r.Context(), q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(report) // a client that has left needs no answer
}
