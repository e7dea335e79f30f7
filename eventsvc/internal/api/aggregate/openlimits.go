package aggregate

import (
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"tidings.example/eventsvc/internal/api/httpio"
)

// The limits of what may be open. kube-apiserver does not limit what it passes on, and the event server sees one
// client.
const (
	maxUserRequests = 16
	maxUserWatches  = 64
	maxRequests     = 1024
	maxWatches      = 8192
)

// open counts what is open of one kind.
type open struct {
	most, mostOfUser int
	word             string // in metrics
	mu               sync.Mutex
	all              int
	byUser           map[string]int // without zeros
}

func newOpen(word string, most, mostOfUser int) *open {
	return &open{most: most, mostOfUser: mostOfUser, word: word, byUser: map[string]int{}}
}

// enter counts a request of a user, or returns a 429 if it is one too many. The caller calls leave at its end.
func (o *open) enter(user string) (leave func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.byUser[user] >= o.mostOfUser:
		return nil, httpio.Beyond("client-"+o.word, apierrors.NewTooManyRequests(
			fmt.Sprintf("%q has %d %s in flight already, please try again", user, o.mostOfUser, o.word), 1))
	case o.all >= o.most:
		return nil, httpio.Beyond(o.word, apierrors.NewTooManyRequests("too many "+o.word+" are in flight, please try again", 1))
	}
	o.all++
	o.byUser[user]++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.all--
		if o.byUser[user]--; o.byUser[user] == 0 {
			delete(o.byUser, user)
		}
	}, nil
}
