package api

import (
	"context"

	"github.com/labstack/echo/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidings.example/eventsvc/internal/codec"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/store"
)

// watch streams the changes of a selection. What is
// wrong before the first byte is an ordinary error; later, and for a version
// that is gone or to come, an ERROR event ends the stream. What it returns is
// as of [stream.open].
func (r *resource) watch(c echo.Context, o metav1.ListOptions, sel event.Selection, f codec.Format) (follow func() error, err error) {
	end := r.upgradable(c, f)
	s := r.newStream(c, f, r.codec.NewFrames(f, r.view), o.AllowWatchBookmarks)
	s.atEnd = []func(){end}
	s.deliver = func(_ context.Context, d store.Delivery) error {
		return s.append(s.frames.AppendDelivery(s.out.buffer(), d))
	}
	s.bookmark = func(initialEnd bool) error {
		return s.append(s.frames.AppendBookmark(s.out.buffer(), s.revision, initialEnd))
	}
	var first *pages
	return s.open(c, o, watched{
		query: store.WatchQuery{Namespace: sel.Namespace, Name: sel.Name, Selector: sel.Selector},
		begin: func(ctx context.Context) (uint64, error) {
			var err error
			if first, err = r.pages(ctx, metav1.ListOptions{}, sel); err != nil {
				return 0, err
			}
			return first.page.Revision, nil
		},
		initial: func(ctx context.Context) error { return s.records(ctx, first) },
	})
}

// records sends the events that there are when the stream begins.
func (s *stream) records(ctx context.Context, p *pages) error {
	for {
		for i := range p.page.Records {
			if err := s.append(s.frames.AppendInitial(s.out.buffer(), &p.page.Records[i])); err != nil {
				return err
			}
		}
		if p.done {
			return nil
		}
		if err := p.next(ctx); err != nil {
			return err
		}
	}
}
