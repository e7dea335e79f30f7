package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// The media types of the OpenAPI documents. Clients ask for the protobuf form
// of version 2 with an at sign and are answered without it.
const (
	openAPIV2Asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	openAPIV2Sent  = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	openAPIV3Asked = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
	openAPIV3Sent  = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

// openAPIDocument is one document in its two forms. The protobuf form is only
// made when somebody asks for it.
type openAPIDocument struct {
	json     []byte
	hash     string
	asked    string // media type by which the protobuf form may be asked for
	sent     string // media type of the protobuf form
	protobuf func() ([]byte, error)
}

// newDocument2 returns a document of version 2.
func newDocument2(b []byte) *openAPIDocument {
	return &openAPIDocument{b, hashOf(b), openAPIV2Asked, openAPIV2Sent, sync.OnceValues(func() ([]byte, error) {
		doc, err := openapiv2.ParseDocument(b)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(doc)
	})}
}

// newDocument3 returns a document of version 3.
func newDocument3(b []byte) *openAPIDocument {
	return &openAPIDocument{b, hashOf(b), openAPIV3Asked, openAPIV3Sent, sync.OnceValues(func() ([]byte, error) {
		doc, err := openapiv3.ParseDocument(b)
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
// changes; a wrong hash is sent on to the right one.
func serveHashed(c echo.Context, path string, d *openAPIDocument) error {
	switch c.QueryParam("hash") {
	case "":
	case d.hash:
		c.Response().Header().Set("Cache-Control", "public, immutable")
		c.Response().Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	default:
		return c.Redirect(http.StatusMovedPermanently, hashedPath(path, d))
	}
	return d.serve(c)
}

func hashedPath(path string, d *openAPIDocument) string {
	return "/openapi/v3/" + path + "?hash=" + d.hash
}

// routeOpenAPI serves version 2 as one document and version 3 as one for each group
// with an index. The index names each with its hash, so that clients may keep it for
// ever.
//
// More are documents of version 3 of what is no API group, by its path without the first
// slash.
func (s *server) routeOpenAPI(e *echo.Echo, groups []Group, more map[string][]byte) error {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g Group) bool { return g.Resources[0].Kind != event.Kind })
	index := map[string]any{}
	add := func(path string, b []byte) {
		doc := newDocument3(b)
		index[path] = map[string]any{"serverRelativeURL": hashedPath(path, doc)}
		e.GET("/openapi/v3/"+path, func(c echo.Context) error { return serveHashed(c, path, doc) })
	}
	for path, b := range more {
		add(path, b)
	}
	for _, g := range groups {
		b, err := openAPI{[]Group{g}, s.codec.Schemas()}.version3()
		if err != nil {
			return fmt.Errorf("OpenAPI document of %s: %w", g, err)
		}
		add(strings.TrimPrefix(g.Path(), "/"), b)
	}
	b, _ := json.Marshal(map[string]any{"paths": index}) // strings only: no error
	e.GET("/openapi/v3", newDocument3(b).serve)
	b, err := openAPI{groups, s.codec.Schemas()}.version2()
	e.GET("/openapi/v2", newDocument2(b).serve)
	return err
}
