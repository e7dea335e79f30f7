package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"tidings.example/deploy/test/bench/internal/load"
	"tidings.example/deploy/test/bench/internal/target"
)

// scattered visits all of the 10,000 events, never one after its neighbour.
func scattered(i int) int { return i * 7919 % 10_000 }

// Gets reads the 10,000 events of e one by one.
func Gets(s *target.Services, e *target.Events, conns int) load.Spec {
	return load.Spec{
		Addr: s.API(), Secure: s.TLS, Conns: conns,
		Next:  func(dst []byte, i int) []byte { return e.Get.Fill(dst, scattered(i)) },
		Check: e.CheckEvent(200, scattered),
	}
}

// Media types of patches.
const (
	MergePatch     = "application/merge-patch+json"
	StrategicPatch = "application/strategic-merge-patch+json"
)

// Patches gives each of the 10,000 events of e a new series.
func Patches(s *target.Services, e *target.Events, mediaType string, conns int) load.Spec {
	return load.Spec{
		Addr: s.API(), Secure: s.TLS, Conns: conns,
		Next: func(dst []byte, i int) []byte {
			body := fmt.Sprintf(`{"series":{"count":%d,"lastObservedTime":"%s"}}`, i+2, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"))
			return e.Patch(dst, scattered(i), mediaType, body)
		},
		Check: e.CheckEvent(200, scattered),
	}
}

// Mixed has several clients read the 10,000 events of a namespace, and create one in their own now and then.
func Mixed(ctx context.Context, s *target.Services, clients, conns int, namespace, own string) (load.Spec, error) {
	var read, write []*target.Events
	for i := range clients {
		r, err1 := s.EventsOf(ctx, i, namespace)
		w, err2 := s.EventsOf(ctx, i, own)
		if err := errors.Join(err1, err2); err != nil {
			return load.Spec{}, err
		}
		read, write = append(read, r), append(write, w)
	}
	const oneIn = 5 // is a create
	return load.Spec{
		Addr: s.API(), Secure: s.TLS, Conns: conns,
		Next: func(dst []byte, i int) []byte {
			if i%oneIn == 0 {
				return write[i%clients].Create.Fill(dst, i)
			}
			return read[i%clients].Get.Fill(dst, scattered(i))
		},
		Check: func(i int, a *load.Answer) error {
			if i%oneIn == 0 {
				return load.Status(http.StatusCreated)(i, a)
			}
			return load.Status(http.StatusOK)(i, a)
		},
	}, nil
}

// MixGets reads events of a mix in no order.
func MixGets(s *target.Services, e *target.Events, m *target.Mix) load.Spec {
	random := rand.New(rand.NewPCG(1, 1))
	return load.Spec{
		Addr: s.API(), Secure: s.TLS, Conns: 1, Check: load.Status(200),
		Next: func(dst []byte, _ int) []byte {
			namespace, name := m.Name(random.IntN(m.Events))
			return e.GetPath(dst, "/apis/events.k8s.io/v1/namespaces/"+namespace+"/events/"+name)
		},
	}
}
