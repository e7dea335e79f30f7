package aggregate

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"tidings.example/eventsvc/internal/client"
)

// Decisions are cached as in delegated authorization of k8s.io/apiserver: times as in DelegatingAuthorizationOptions,
// sizes as in the webhook authorizer.
const (
	keptFor     = 10 * time.Second
	keptMost    = 8192
	keptSpec    = 10_000 // bytes; a larger one is reviewed each time
	reviewTime  = 5 * time.Second
	reviewsPath = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
	masters     = "system:masters" // the group that kube-apiserver allows everything
)

// Reviewer asks the cluster who may do what. It repeats what kube-apiserver has decided before it passed the request
// on, so that a URL that the two read differently shows nothing that is not allowed. Whoever holds a certificate of the
// front proxy can still name any user.
type Reviewer struct {
	api     *client.Client // of the cluster
	kept    *lru.Cache     // by the whole spec in JSON
	flights singleflight.Group
	reviews *prometheus.CounterVec
	side    side
	now     func() time.Time
}

// The results of reviews, as labels.
const (
	reviewAllowed = "allowed"
	reviewDenied  = "denied"
	reviewFailed  = "failed"
	reviewKept    = "kept" // answered from the cache
	reviewMasters = "masters"
)

// NewReviewer returns a reviewer that asks the cluster's API.
func NewReviewer(api *client.Client, log *slog.Logger, registry prometheus.Registerer) *Reviewer {
	r := &Reviewer{
		api: api, kept: lru.New(keptMost), side: side{log: log, name: "the cluster's reviews of access"}, now: time.Now,
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "eventsvc_aggregate_reviews_total",
			Help: "Decisions about requests: allowed, denied or failed reviews of the cluster, kept ones, and requests of system:masters, who need no review.",
		}, []string{"result"}),
	}
	for _, result := range []string{reviewAllowed, reviewDenied, reviewFailed, reviewKept, reviewMasters} {
		r.reviews.WithLabelValues(result)
	}
	registry.MustRegister(r.reviews)
	return r
}

// decision is the answer to a review.
type decision struct {
	allowed bool
	reason  string
	until   time.Time // it is kept
}

// review returns whether a request is allowed. An error is never an allowance, and is not kept.
func (r *Reviewer) review(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (decision, error) {
	if slices.Contains(spec.Groups, masters) {
		r.reviews.WithLabelValues(reviewMasters).Inc()
		return decision{allowed: true, reason: masters}, nil
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return decision{}, err
	}
	key := string(text)
	if kept, ok := r.kept.Get(key); ok && r.now().Before(kept.(decision).until) {
		r.reviews.WithLabelValues(reviewKept).Inc()
		return kept.(decision), nil
	}
	// Equal requests share a review, which goes on if the first of them ends.
	shared := r.flights.DoChan(key, func() (any, error) { return r.ask(context.WithoutCancel(ctx), key, spec) })
	select {
	case <-ctx.Done():
		return decision{}, ctx.Err()
	case answer := <-shared:
		if answer.Err != nil {
			return decision{}, retryAfter(apierrors.NewServiceUnavailable("the cluster did not say whether this is allowed, please try again"), 1)
		}
		return answer.Val.(decision), nil
	}
}

// ask asks the cluster.
func (r *Reviewer) ask(ctx context.Context, key string, spec authorizationv1.SubjectAccessReviewSpec) (decision, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTime)
	defer cancel()
	review := authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{Kind: "SubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}, Spec: spec,
	}
	var answer authorizationv1.SubjectAccessReview
	err := r.api.Do(ctx, client.Request{Method: http.MethodPost, Path: reviewsPath, Body: review}, &answer)
	if err == nil && answer.Kind != review.Kind {
		err = fmt.Errorf("the cluster answered with a %q instead of a review", answer.Kind)
	}
	if r.side.failed(err); err != nil {
		r.reviews.WithLabelValues(reviewFailed).Inc()
		return decision{}, err
	}
	d := decision{allowed: answer.Status.Allowed && !answer.Status.Denied, reason: answer.Status.Reason, until: r.now().Add(keptFor)}
	if d.allowed {
		r.reviews.WithLabelValues(reviewAllowed).Inc()
	} else {
		r.reviews.WithLabelValues(reviewDenied).Inc()
	}
	if len(key) <= keptSpec {
		r.kept.Add(key, d)
	}
	return d, nil
}

// retryAfter tells a client when to try again.
func retryAfter(answer *apierrors.StatusError, seconds int32) *apierrors.StatusError {
	answer.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: seconds}
	return answer
}
