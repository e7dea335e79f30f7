package queries

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidings.example/eventsvc/internal/api/httpio"
	"tidings.example/eventsvc/internal/event"
	"tidings.example/eventsvc/internal/query"
	"tidings.example/shared/nearest"
)

// repeated is the one parameter that may be given more than once.
const repeated = "namespace"

// descriptions has all parameters that there are, with what the description of the API says of each.
var descriptions = map[string]string{
	"from":          "Begin of the range: RFC 3339, or relative to now as -6h, -7d or now. An hour before the parameter \"to\", if it is not given.",
	"to":            "End of the range, which is not part of it, in the forms of \"from\". Now, if it is not given.",
	repeated:        "Only events in these namespaces. All that the caller may list, if it is not given.",
	"fieldSelector": "Terms on fields, as in lists. The dimensions are fields too: " + query.Names(query.Counted) + ".",
	"labelSelector": "Terms on labels, as in lists.",
	"search":        "What people search for: words and \"phrases\" in the note, reason, object or node; field:value, field:a,b, field!=value, -term, OR, NOT and parentheses.",
	"text":          "A text in the language of the parameter \"search\".",
	"by":            "Dimensions to count by, separated by commas.",
	"over":          "Dimensions that each bucket is counted by, separated by commas.",
	"values":        "At most so many values of each dimension.",
	"step":          "Length of a bucket, as 5m, 1h or 1d. Chosen so that there are at most 120, if it is not given.",
	"order":         "Order of the answer.",
	"limit":         "At most so many rows.",
	"continue":      "The continue of the page before.",
	"revision":      "The state that is looked at, as an answer has named it. The newest, if it is not given.",
	"at":            "End of the window that is compared with what was before, in the forms of \"from\". Now, if it is not given.",
	"window":        "Length of that window, as 15m.",
	"uid":           "UID of the object.",
	"kind":          "Kind of the object, with its name.",
	"name":          "Name of the object, with its kind.",
	"cluster":       "Only events of this cluster. Those of all, if it is not given.",
	"formulas":      "What to do with cells of CSV that a spreadsheet takes for formulas: escape puts ' before them.",
}

// badRequest is the 400 for a mistake in a parameter, or in the query as a whole if that is
// empty.
func badRequest(parameter, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if parameter == "" {
		return apierrors.NewBadRequest(text)
	}
	err := apierrors.NewBadRequest("query parameter " + parameter + ": " + text)
	err.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{
		{Type: metav1.CauseTypeFieldValueInvalid, Field: parameter, Message: text},
	}}
	return err
}

// wrong turns an error of a query into an error of its parameter.
func (p *endpoint) wrong(err error) error {
	if parameter, ok := errors.AsType[*query.ParameterError](err); ok {
		if p.instant && parameter.Parameter == "to" {
			parameter.Parameter = "at" // a question about an instant has "at" for the end of its range
		}
		return badRequest(parameter.Parameter, "%s", parameter.Problem)
	}
	return err
}

// check returns an error if a parameter is not known to the endpoint, or is there twice.
func (p *endpoint) check(given url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(given)) { // so that the error does not depend on chance
		if !slices.Contains(p.parameters, name) {
			return badRequest(name, "there is none of this name%s: %s knows %s", probably(name, p.parameters), p.name, strings.Join(p.parameters, ", "))
		}
		if len(given[name]) > 1 && name != repeated {
			return badRequest(name, "is there %d times: give it once", len(given[name]))
		}
	}
	return nil
}

// probably suggests the name that was meant, if there is one.
func probably(name string, known []string) string {
	if best := nearest.Name(name, slices.Values(known)); best != "" {
		return ", probably " + best + " was meant"
	}
	return ""
}

// namespaces returns the namespaces that are asked for, in the small letters that all names of namespaces have.
func (p *endpoint) namespaces(given url.Values) (all []string, err error) {
	for _, name := range given["namespace"] {
		lower := strings.ToLower(name)
		if problems := validation.IsDNS1123Label(lower); len(problems) > 0 {
			instead := ""
			if slices.Contains(p.parameters, "search") {
				instead = ", or give a search such as ns:team-*"
			}
			return nil, badRequest("namespace", "%q is no name of a namespace: leave it out for all that you may list%s", name, instead)
		}
		all = append(all, lower)
	}
	return all, nil
}

// cluster returns the cluster that is asked for, empty for any.
func (r *request) cluster() (string, error) {
	name := r.given.Get("cluster")
	if len(validation.IsValidLabelValue(name)) > 0 {
		return "", badRequest("cluster", "%q is no name of a cluster: give a value of the label %s, or leave it out for all", name, event.ClusterLabel)
	}
	return name, nil
}

// revision returns the state that is asked for, 0 for the newest.
func (r *request) revision() (uint64, error) {
	text := r.given.Get("revision")
	if text == "" {
		return 0, nil
	}
	revision, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, badRequest("revision", "%q is no revision: take it from an answer, or leave it out for the newest state", text)
	}
	return revision, nil
}

// read reads the parameters that say what rows the answer has, and how many.
func (r *request) read() (err error) {
	if text := r.given.Get("formulas"); text != "" && text != escapeFormulas {
		return badRequest("formulas", "%q is not known: write %s, or leave it out", text, escapeFormulas)
	}
	if r.limit, err = r.number("limit", r.endpoint.limit, r.endpoint.maxLimit); err != nil {
		return err
	}
	if r.values, err = r.number("values", query.DefaultFacetValues, query.MaxFacetValues); err != nil {
		return err
	}
	if r.order, err = r.endpoint.orderOf(r.given.Get("order")); err != nil {
		return err
	}
	if r.by, err = query.ParseBy("by", r.given.Get("by"), r.endpoint.by, r.endpoint.mostBy); err == nil && r.by == nil && r.endpoint.required == "by" {
		return badRequest("by", "is missing: name what to group by, of %s", query.Names(r.endpoint.by))
	}
	if err != nil {
		return err
	}
	r.over, err = query.ParseBy("over", r.given.Get("over"), query.Counted, query.MaxBy)
	return err
}

// number reads a number from 1 on.
func (r *request) number(parameter string, usual, most int) (int, error) {
	text := r.given.Get(parameter)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, badRequest(parameter, "%q is no number from 1 to %d", text, most)
	}
	return n, nil
}

// escapeFormulas is the value of the parameter formulas.
const escapeFormulas = "escape"

// orderOf returns the order of a name, the first if it is empty.
func (p *endpoint) orderOf(name string) (query.Order, error) {
	switch {
	case slices.Contains(p.orders, query.Order(name)):
		return query.Order(name), nil
	case name != "":
		return "", badRequest("order", "%q is no order here: there are %s", name, strings.Join(names(p.orders), ", "))
	case len(p.orders) > 0:
		return p.orders[0], nil
	}
	return "", nil // no rows to order
}

// negotiate returns the media type of the answer that a client prefers.
func (p *endpoint) negotiate(accept string) (media string, err error) {
	if accept == "" {
		return mediaJSON, nil
	}
	offers := map[string]string{mediaJSON: mediaJSON, "application/*": mediaJSON, "*/*": mediaJSON, mediaCSV: mediaCSV, "text/*": mediaCSV, mediaTable: mediaTable}
	if p.lined {
		offers = map[string]string{mediaJSON: mediaJSON, "application/*": mediaJSON, "*/*": mediaJSON, mediaLines: mediaLines}
	}
	media = httpio.Preferred(accept, offers)
	if media == "" {
		return "", &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
			Message: "only the following media types are accepted: " + strings.Join(p.medias(), ", "),
		}}
	}
	return media, nil
}

// medias returns the media types that an endpoint answers with.
func (p *endpoint) medias() []string {
	switch {
	case p.answer == nil:
		return []string{mediaJSON}
	case p.lined:
		return []string{mediaJSON, mediaLines}
	}
	return []string{mediaJSON, mediaCSV, mediaTable}
}

// The media types of answers.
const (
	mediaJSON  = "application/json"
	mediaCSV   = "text/csv"
	mediaTable = "application/vnd.tidings.table+json"
	mediaLines = "application/x-ndjson"
)
