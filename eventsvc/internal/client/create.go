package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Create stores an object under its name, once: what is not known to have been stored is sent again under the same name,
// and a name that is taken is looked at. same tells whether the object there is the one that was to be stored, by this or
// an earlier run. What fails is given to again, which waits and returns nil to try once more.
func (c *Client) Create(ctx context.Context, path, name string, body []byte, same func(json.RawMessage) bool, again func(error) error) (json.RawMessage, error) {
	for {
		stored, err := c.Do(ctx, Request{Method: http.MethodPost, Path: path, Body: body})
		if err == nil {
			return stored, nil
		}
		if Code(err) == http.StatusConflict {
			taken, getErr := c.Do(ctx, Request{Path: path + "/" + url.PathEscape(name)})
			switch {
			case getErr == nil && same(taken):
				return taken, nil
			case getErr == nil:
				return nil, err
			case Code(getErr) != http.StatusNotFound: // else it has gone meanwhile: the name is free
				err = getErr
			}
		}
		if err = again(err); err != nil {
			return nil, err
		}
	}
}
