package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"github.com/labstack/echo/v4"
	"google.golang.org/protobuf/proto"

	"tidings.example/eventsvc/internal/event"
)

// openAPIDocument is one document in its two forms. The protobuf form is only
// made when somebody asks for it.
type openAPIDocument struct {
	json     []byte
	hash     string
	asked    string // media type by which the protobuf form may be asked for, with an at sign
	sent     string // media type of the protobuf form
	protobuf func() ([]byte, error)
}

// newDocument returns a document of a version, v2 or v3, that parse can read.
func newDocument[T proto.Message](b []byte, version string, parse func([]byte) (T, error)) *openAPIDocument {
	media := "application/com.github.proto-openapi.spec." + version
	return &openAPIDocument{b, hashOf(b), media + "@v1.0+protobuf", media + ".v1.0+protobuf", sync.OnceValues(func() ([]byte, error) {
		doc, err := parse(b)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(doc)
	})}
}

// serve answers in the form that the Accept header asks for.
func (d *openAPIDocument) serve(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Vary", "Accept")
	h.Set("ETag", fmt.Sprintf("%q", d.hash))
	media, body := echo.MIMEApplicationJSON, d.json
	switch accept := c.Request().Header.Get("Accept"); {
	case strings.Contains(accept, d.asked), strings.Contains(accept, d.sent):
		b, err := d.protobuf()
		if err != nil {
			return fmt.Errorf("OpenAPI document as protobuf: %w", err)
		}
		media, body = d.sent, b
	case accept != "" && !strings.Contains(accept, "json") && !strings.Contains(accept, "*"):
		return echo.NewHTTPError(http.StatusNotAcceptable)
	}
	h.Set("Content-Type", media)
	http.ServeContent(c.Response(), c.Request(), "", time.Time{}, bytes.NewReader(body))
	return nil
}

// serveHashed serves a document of version 3. Asked for by its hash it never
// changes; a wrong hash is sent on to the right one, at url.
func serveHashed(c echo.Context, url string, d *openAPIDocument) error {
	switch c.QueryParam("hash") {
	case "":
	case d.hash:
		c.Response().Header().Set("Cache-Control", "public, immutable")
		c.Response().Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	default:
		return c.Redirect(http.StatusMovedPermanently, url)
	}
	return d.serve(c)
}

// openAPIDocuments are all documents. They are made when the first is asked for: that takes longer than the rest of a
// start.
type openAPIDocuments struct {
	v2, index *openAPIDocument
	v3        map[string]*openAPIDocument // by their paths below /openapi/v3/
}

// routeOpenAPI serves version 2 as one document and version 3 as one for each group
// with an index. The index names each with its hash, so that clients may keep it for
// ever.
//
// More makes the documents of version 3 of what is no API group, by its path without the first
// slash.
func (s *server) routeOpenAPI(e *echo.Echo, groups []Group, more map[string]func() ([]byte, error)) {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g Group) bool { return g.Resources[0].Kind != event.Kind })
	made := sync.OnceValues(func() (*openAPIDocuments, error) { return newDocuments(groups, s.codec.Schemas, more) })
	route := func(path string, serve func(c echo.Context, all *openAPIDocuments) error) {
		e.GET(path, func(c echo.Context) error {
			all, err := made()
			if err != nil {
				return err
			}
			return serve(c, all)
		})
	}
	paths := slices.Collect(maps.Keys(more))
	for _, g := range groups {
		paths = append(paths, documentPath(g))
	}
	for _, path := range paths {
		route("/openapi/v3/"+path, func(c echo.Context, all *openAPIDocuments) error {
			return serveHashed(c, hashedURL(path, all.v3[path]), all.v3[path])
		})
	}
	route("/openapi/v3", func(c echo.Context, all *openAPIDocuments) error { return all.index.serve(c) })
	route("/openapi/v2", func(c echo.Context, all *openAPIDocuments) error { return all.v2.serve(c) })
}

// documentPath is where the document of a group is, below /openapi/v3/.
func documentPath(g Group) string { return strings.TrimPrefix(g.Path(), "/") }

// hashedURL is where a document of version 3 is as long as it stays the same.
func hashedURL(path string, d *openAPIDocument) string {
	return "/openapi/v3/" + path + "?hash=" + d.hash
}

func newDocuments(groups []Group, schemas func() map[string]any, more map[string]func() ([]byte, error)) (*openAPIDocuments, error) {
	all := &openAPIDocuments{v3: map[string]*openAPIDocument{}}
	for path, document := range more {
		b, err := document()
		if err != nil {
			return nil, fmt.Errorf("OpenAPI document of %s: %w", path, err)
		}
		all.v3[path] = newDocument(b, "v3", openapiv3.ParseDocument)
	}
	for _, g := range groups {
		b, err := openAPI{[]Group{g}, schemas()}.version3()
		if err != nil {
			return nil, fmt.Errorf("OpenAPI document of %s: %w", g, err)
		}
		all.v3[documentPath(g)] = newDocument(b, "v3", openapiv3.ParseDocument)
	}
	index := map[string]any{}
	for path, d := range all.v3 {
		index[path] = map[string]any{"serverRelativeURL": hashedURL(path, d)}
	}
	b, _ := json.Marshal(map[string]any{"paths": index}) // strings only: no error
	all.index = newDocument(b, "v3", openapiv3.ParseDocument)
	b, err := openAPI{groups, schemas()}.version2()
	if err != nil {
		return nil, fmt.Errorf("OpenAPI document of version 2: %w", err)
	}
	all.v2 = newDocument(b, "v2", openapiv2.ParseDocument)
	return all, nil
}
