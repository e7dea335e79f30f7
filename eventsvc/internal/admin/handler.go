package admin

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"tidings.example/eventsvc/internal/audit"
	"tidings.example/eventsvc/internal/disk"
	"tidings.example/eventsvc/internal/rules"
	"tidings.example/eventsvc/internal/store"
	"tidings.example/shared/httpserver"
	"tidings.example/shared/safefile"
)

// Path is the path of the [Handler].
const Path = "/store/"

const (
	tokenName      = "admin.token"
	headerRevision = "Store-Revision"
	headerLines    = "Store-Lines"
	headerBytes    = "Store-Bytes" // instead of Content-Length, so that the answer ends only when the work has ended and other work may begin
	maxChunk       = 16 << 20      // bytes of an import in one request
	maxQuestion    = 64 << 10      // bytes: more than a token and names need
	maxExports     = 8             // at a time: each keeps memory until it is read
	tellEvery      = 200 * time.Millisecond
)

// NewToken makes the secret that callers of the handler must send, and writes it to the data directory, readable by
// this user only. On a full disk the secret of the start before stays, or is missing, which is logged: the service has
// to start, because its retention makes room.
func NewToken(dataDir string, log *slog.Logger) (string, error) {
	path, token := filepath.Join(dataDir, tokenName), rand.Text()
	err := safefile.Write(path, []byte(token))
	switch {
	case err == nil:
		return token, nil
	case !disk.IsFull(err):
		return "", fmt.Errorf("secret of the admin listener: %w", err)
	}
	if before, unread := os.ReadFile(path); unread == nil && len(before) == len(token) {
		return string(before), nil
	}
	log.Warn("the disk is full: commands cannot ask this service until a restart with room for its secret", "file", path, "error", err)
	return token, nil
}

// Handler offers a [Store] to [Remote] over HTTP.
type Handler struct {
	store Local
	token string
	audit *audit.Log // nil: there is none
	mux   http.ServeMux
	busy  sync.Mutex // held by a backup, a check, a compaction or a count: see alone

	exports chan struct{}      // has one element for each export that runs
	refused func(limit string) // counts a refusal
}

// NewHandler returns a handler for callers that send the token. It refuses imports
// while the audit log, which may be nil, is not writable. [audit.Handler] makes the
// entries. Questions has handlers by the name of what is asked for besides: a token, or
// the settings ("config"). Refused counts requests that are refused because of a limit.
func NewHandler(s Local, token string, log *audit.Log, questions map[string]http.Handler, refused func(limit string)) *Handler {
	h := &Handler{store: s, token: token, audit: log, exports: make(chan struct{}, maxExports), refused: refused}
	h.mux.HandleFunc("POST "+Path+"backup", h.alone(h.backup))
	h.mux.HandleFunc("POST "+Path+"check", h.alone(long(h.store.Check)))
	h.mux.HandleFunc("POST "+Path+"compact", h.alone(h.compact))
	h.mux.HandleFunc("POST "+Path+"export", h.export)
	h.mux.HandleFunc("POST "+Path+"import", h.importArrivals)
	h.mux.HandleFunc("POST "+Path+"usage", h.alone(h.usage))
	for name, answer := range questions {
		h.mux.HandleFunc("POST "+Path+name, h.question(answer))
	}
	return h
}

// ServeHTTP refuses requests without the token.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d := audit.Decision{Verb: strings.TrimPrefix(r.URL.Path, Path), Resource: "store", Rule: "the caller knows the secret in " + tokenName}
	d.Allowed = subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+h.token)) == 1
	if !d.Allowed {
		d.Rule = "the caller does not know the secret in " + tokenName
	}
	audit.Decided(r.Context(), d)
	if !d.Allowed {
		http.Error(w, "the token is not the one in "+tokenName+" of this service's data directory", http.StatusUnauthorized)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// alone lets only one request run at a time, because each needs much of the disk. It
// refuses others with 409.
func (h *Handler) alone(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !h.busy.TryLock() {
			http.Error(w, "a backup, a check, a compaction or a count is running; try again when it has ended", http.StatusConflict)
			return
		}
		defer h.busy.Unlock()
		next(w, r)
	}
}

// answer is a long answer. Before its first byte, an error gets a status. After that, only a
// cut connection can show that the answer is incomplete. An answer in lines ([told]) has the
// error in its last line instead.
type answer struct {
	http.ResponseWriter
	begun bool
}

func (a *answer) open(contentType, headerTotal string) Open {
	return func(revision uint64, total int64) io.Writer {
		a.begun = true
		a.Header().Set("Content-Type", contentType)
		a.Header().Set(headerRevision, strconv.FormatUint(revision, 10))
		a.Header().Set(headerTotal, strconv.FormatInt(total, 10))
		return a
	}
}

func (a *answer) fail(err error) {
	switch {
	case err == nil:
	case a.begun:
		panic(http.ErrAbortHandler)
	default:
		http.Error(a, err.Error(), http.StatusInternalServerError)
	}
}

func (h *Handler) backup(w http.ResponseWriter, r *http.Request) {
	a := &answer{ResponseWriter: w}
	a.fail(h.store.Backup(r.Context(), a.open("application/x-tar", headerBytes)))
}

func (h *Handler) compact(w http.ResponseWriter, r *http.Request) {
	compress, err := strconv.ParseBool(r.URL.Query().Get("compress"))
	if err != nil {
		http.Error(w, "compress: "+err.Error(), http.StatusBadRequest)
		return
	}
	long(func(ctx context.Context, progress store.Progress) (*Compaction, error) {
		return h.store.Compact(ctx, compress, progress)
	})(w, r)
}

func (h *Handler) usage(w http.ResponseWriter, r *http.Request) {
	maxBytes, err := strconv.ParseInt(r.URL.Query().Get("maxBytes"), 10, 64)
	if err != nil {
		http.Error(w, "maxBytes: "+err.Error(), http.StatusBadRequest)
		return
	}
	rulesFile, ok := h.body(w, r, rules.MaxFile)
	if !ok {
		return
	}
	a := &answer{ResponseWriter: w}
	a.fail(a.say(h.store.Usage(r.Context(), maxBytes, rulesFile)))
}

func (h *Handler) export(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if err != nil {
		http.Error(w, "after: "+err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case h.exports <- struct{}{}:
		defer func() { <-h.exports }()
	default:
		h.refused("exports")
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("%d exports are running and not read to their end; try again when one has ended", maxExports), http.StatusTooManyRequests)
		return
	}
	a := &answer{ResponseWriter: w}
	a.fail(h.store.Export(r.Context(), after, a.open("application/x-ndjson", headerLines)))
}

func (h *Handler) importArrivals(w http.ResponseWriter, r *http.Request) {
	if err := h.audit.Writable(); err != nil {
		httpserver.Annotate(r.Context(), slog.String("refused", "audit log: "+err.Error()))
		http.Error(w, "the audit log cannot be written at present and nothing is imported without it: "+err.Error(), http.StatusServiceUnavailable)
		return
	}
	body, ok := h.body(w, r, maxChunk)
	if !ok {
		return
	}
	arrivals, err := decodeArrivals(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	sum, err := h.store.Import(r.Context(), arrivals)
	a := &answer{ResponseWriter: w}
	a.fail(a.say(sum, err))
}

// body reads the body of a request. If that fails, it answers with the codes of the API, and reports false.
func (h *Handler) body(w http.ResponseWriter, r *http.Request, most int64) (body []byte, ok bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	code := http.StatusBadRequest
	switch {
	case err == nil:
		return body, true
	case errors.Is(err, os.ErrDeadlineExceeded):
		h.refused("body-time")
		code = http.StatusRequestTimeout
	case errors.As(err, new(*http.MaxBytesError)):
		h.refused("body")
		code = http.StatusRequestEntityTooLarge
	}
	http.Error(w, "the body could not be read: "+err.Error(), code)
	return nil, false
}

// question reads the whole body of a request before it calls the handler.
func (h *Handler) question(answer http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if body, ok := h.body(w, r, maxQuestion); ok {
			r.Body = io.NopCloser(bytes.NewReader(body))
			answer.ServeHTTP(w, r)
		}
	}
}

// told is one line of an answer in lines: the progress of the work or, in the last
// line, its result or error.
type told struct {
	Done   int64           `json:"done,omitempty"`
	Total  int64           `json:"total,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// say writes the last line of an answer.
func (a *answer) say(result any, failed error) error {
	var t told
	var err error
	if t.Result, err = json.Marshal(result); failed != nil {
		t.Error = failed.Error()
	}
	return errors.Join(err, a.tell(t))
}

// tell writes a line and flushes it, because a person may be waiting.
func (a *answer) tell(t told) error {
	a.begun = true
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if _, err := a.Write(append(line, '\n')); err != nil {
		return err
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// long returns a handler of work that reports its progress.
func long[T any](work func(context.Context, store.Progress) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w}
		w.Header().Set("Content-Type", "application/x-ndjson")
		var last time.Time
		result, err := work(r.Context(), func(done, total int64) {
			if time.Since(last) >= tellEvery {
				last = time.Now()
				_ = a.tell(told{Done: done, Total: total}) // a client that leaves ends the context
			}
		})
		a.fail(a.say(result, err))
	}
}
