package conformance_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"testing"
	"time"
)

// shortToken is good for a lifetime.
func (i *issuer) shortToken(t *testing.T, lifetime time.Duration) (token string, expires time.Time) {
	t.Helper()
	now := time.Now().Truncate(time.Second)
	expires = now.Add(lifetime)
	return i.sign(t, map[string]any{
		"iss": issuerName, "sub": "short", "client_id": "short", "aud": "short", "iat": now.Unix(), "exp": expires.Unix(), "jti": fmt.Sprint(now.UnixNano()),
	}), expires
}

// shortLived is a kubectl whose token will soon have expired.
func (s *server) shortLived(t *testing.T, bin string, lifetime time.Duration) (k *kubectl, token string, expires time.Time) {
	t.Helper()
	long := s.token
	defer func() { s.token = long }()
	s.token, expires = run.issuer.shortToken(t, lifetime)
	return s.kubectl(t, bin), s.token, expires
}

// TestWatchOverTokenLives: kubectl does not reopen a watch that the server has
// ended, so a watch outlives its token. `kubectl get -w` shows changes for
// three lifetimes of its token. New requests with the expired token are
// refused.
func TestWatchOverTokenLives(t *testing.T) {
	t.Parallel()
	const lifetime = 15 * time.Second // enough for kubectl to begin on a busy machine
	for name, find := range map[string]func() (string, error){
		"built": run.kubectl, "installed": func() (string, error) { return exec.LookPath("kubectl") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bin, err := find()
			if err != nil {
				missing(t, "kubectl", "install any recent one on PATH; the newest is tested without it")
			}
			s := start(t, "--clock-skew", "0s")
			k, token, expires := s.shortLived(t, bin, lifetime)
			out := k.follow(t, s, args("get events -w -o name")...)
			s.untilWatched(t, 1)
			for life := range 3 {
				s.create(t, "team", fmt.Sprintf("e%d", life))
				out.want(t, fmt.Sprintf("event/e%d", life))
				end := expires.Add(time.Duration(life) * lifetime)
				eventually(t, "the end of a lifetime", func() error {
					if left := time.Until(end); left > 0 {
						return fmt.Errorf("%s are left", left)
					}
					return nil
				})
				req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.httpAddr+in(eventsV1, "team"), nil)).or(t)
				req.Header.Set("Authorization", "Bearer "+token)
				res := must(s.plain.Do(req)).or(t)
				_ = res.Body.Close()
				if res.StatusCode != http.StatusUnauthorized {
					t.Errorf("the token has expired, and a new request with it is answered %s", res.Status)
				}
			}
			s.create(t, "team", "last")
			out.want(t, "event/last")
			s.untilWatched(t, 1)
		})
	}
}

// TestWatchEndsWithItsToken: with --watch-after-expiry=0 a watch ends cleanly
// when its token expires; kubectl does not report a failure.
func TestWatchEndsWithItsToken(t *testing.T) {
	t.Parallel()
	s := start(t, "--clock-skew", "0s", "--watch-after-expiry", "0s")
	s.create(t, "team", "a")
	k, _, expires := s.shortLived(t, must(run.kubectl()).or(t), 15*time.Second)
	out, stderr, code := k.try(t, args("get events -w -o name")...)
	if code != 0 || stderr != "" || out != "event/a\n" || time.Now().Before(expires) {
		t.Errorf("kubectl ended with %d, %s before the token: %q %q", code, time.Until(expires), out, stderr)
	}
}
