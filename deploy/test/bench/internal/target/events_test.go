package target

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
)

func TestCreateIsAnEventOfOneKilobyte(t *testing.T) {
	t.Parallel()
	e := NewEvents("127.0.0.1:1", "TOKEN", "some-namespace")
	for _, i := range []int{0, 7, 1_234_567_890} {
		head, body, _ := bytes.Cut(e.Create.Fill(nil, i), []byte("\r\n\r\n"))
		var got struct {
			Note, EventTime string
			Metadata        struct {
				Name   string
				Labels map[string]string
			}
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("event %d: %v\n%s", i, err, body)
		}
		if got.Metadata.Labels[ShardLabel] != map[int]string{0: "00", 7: "07", 1_234_567_890: "90"}[i] || got.Metadata.Name != EventName(i) || got.Note != note {
			t.Errorf("event %d: %+v", i, got)
		}
		if _, err := time.Parse("2006-01-02T15:04:05.000000Z07:00", got.EventTime); err != nil {
			t.Errorf("eventTime: %v", err)
		}
		if len(body) < 950 || len(body) > 1100 {
			t.Errorf("event %d has %d bytes", i, len(body))
		}
		if !bytes.Contains(head, []byte("\r\nAuthorization: Bearer TOKEN\r\n")) || !bytes.HasPrefix(head, []byte("POST /apis/events.k8s.io/v1/namespaces/some-namespace/events HTTP/1.1\r\n")) {
			t.Errorf("head:\n%s", head)
		}
	}
}

func TestCheckEventNoticesWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := NewEvents("h", "t", "ns")
	good := `{"kind":"Event","metadata":{"name":"` + EventName(3) + `","namespace":"ns","uid":"u","resourceVersion":"9"},"note":"` + note + `"}`
	check := e.CheckEvent(201, func(int) int { return 3 })
	for _, c := range []struct {
		name string
		a    load.Answer
		ok   bool
	}{
		{"as sent", load.Answer{Status: 201, Body: []byte(good)}, true},
		{"another status", load.Answer{Status: 200, Body: []byte(good)}, false},
		{"another event", load.Answer{Status: 201, Body: []byte(strings.Replace(good, "0003", "0004", 1))}, false},
		{"no revision", load.Answer{Status: 201, Body: []byte(strings.Replace(good, `"9"`, `""`, 1))}, false},
		{"cut off", load.Answer{Status: 201, Body: []byte(good[:len(good)-1])}, false},
	} {
		if err := check(0, &c.a); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
