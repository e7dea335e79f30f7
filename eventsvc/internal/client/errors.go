package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/shared/printable"
	"tidings.example/shared/tokenclient"
)

// UnreachableError means that no whole answer came. A write may have been carried out or not.
type UnreachableError struct {
	Server string
	Err    error
}

// Error names the server and the cause.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no answer from %s: %v", e.Server, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// TokenError means that there is no token to send.
type TokenError struct{ Err error }

// Error tells the cause.
func (e *TokenError) Error() string { return "no token: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TokenError) Unwrap() error { return e.Err }

// Refusal is the error of an answer with a status that is not a good one.
func Refusal(status int, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(status), Message: message}}
}

// refusal returns the error of an answer whose status is not a good one.
func refusal(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Status != metav1.StatusFailure {
		text := strings.TrimSpace(string(body[:min(len(body), 200)]))
		status = metav1.Status{Status: metav1.StatusFailure, Message: fmt.Sprintf("%s %s", resp.Status, text)}
	}
	status.Code, status.Message = int32(resp.StatusCode), printable.OneLine(status.Message)
	if wait, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && wait > 0 {
		if status.Details == nil {
			status.Details = &metav1.StatusDetails{}
		}
		status.Details.RetryAfterSeconds = int32(min(wait, 3600))
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// Code returns the status code of a refusal, or 0 if err is none.
func Code(err error) int {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return int(status.ErrStatus.Code)
	}
	return 0
}

// retryAfter returns how long the server, or the token endpoint, asks to wait, or 0.
func retryAfter(err error) time.Duration {
	if endpoint, ok := errors.AsType[*tokenclient.UnavailableError](err); ok {
		return endpoint.RetryAfter
	}
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// Retryable reports whether the same request may succeed later: nothing answered, or the server or the token endpoint
// was busy or stopping. A program for tokens that failed may succeed later too, because it asks a token endpoint.
func Retryable(err error) bool {
	switch code := Code(err); code {
	case 0:
		_, unreachable := errors.AsType[*UnreachableError](err)
		_, noToken := errors.AsType[*tokenclient.UnavailableError](err)
		_, program := errors.AsType[*exec.ExitError](err)
		return unreachable || noToken || program
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return code >= http.StatusInternalServerError
	}
}

// Hint returns what a user can do about an error, or "" if its text says enough. There is one hint for each cause, so
// that every command gives the same advice.
func Hint(err error) string {
	unreachable, away := errors.AsType[*UnreachableError](err)
	switch code := Code(err); {
	case code == http.StatusUnauthorized:
		return "the server knows no such caller: give a token of an issuer that it trusts (--token-file, --token-command, " +
			"or --token-url with --client-id and --client-secret-file, or with --assertion-file); `tokensvc token inspect` says what is wrong with one"
	case code == http.StatusForbidden:
		return "the token is good but may not do this: ask who runs the server for the right; `eventsvc can-i` explains its policy file"
	case code == http.StatusNotFound:
		return "nothing is served there: check --server, --group-domain and the namespace"
	case code == http.StatusGone:
		return "the server no longer keeps that much history: start over without the old version"
	case code == http.StatusBadRequest && strings.Contains(err.Error(), "HTTP request to an HTTPS server"):
		return "write https:// in --server"
	case code == http.StatusTooManyRequests:
		return "the server is busy: try again in a moment"
	case away:
		text := unreachable.Err.Error()
		switch {
		case strings.Contains(text, "x509:") || strings.Contains(text, "certificate"):
			return "its certificate is not trusted: name the authority that signed it with --ca-file"
		case strings.Contains(text, "HTTP response to HTTPS client"):
			return "it speaks plain HTTP there: write http:// in --server"
		case strings.Contains(text, "malformed HTTP response"):
			return "it speaks something else there: perhaps https:// in --server"
		}
		return "is it running, and --server right?"
	}
	return ""
}
