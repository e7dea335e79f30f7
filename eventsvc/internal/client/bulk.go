package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
)

// bulkPath is where an event server takes many events of core/v1 in one request.
const bulkPath = "/bulk/v1/events"

// Result is what a server says of one event of [Client.Bulk].
type Result struct {
	Code     int    `json:"code"`     // 201: created; 200: the copy was replaced, or stored already in this version or a later one; otherwise the code of a refusal
	Replaced bool   `json:"replaced"` // an earlier version of the copy
	Reason   string `json:"reason"`   // of a refusal
}

// Bulk creates events, and replaces copies of a mirror, in one request. It sends them in protobuf, which takes both
// sides a fraction of the time of JSON. Each event has a result. After a retryable error some events may be stored.
// Copies of a mirror can be sent again.
func (c *Client) Bulk(ctx context.Context, events []corev1.Event) ([]Result, error) {
	body, err := encodeEvents(events)
	if err != nil {
		return nil, err
	}
	resp, err := c.send(ctx, Request{Method: http.MethodPost, Path: bulkPath, proto: body})
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	results := make([]Result, len(events))
	answers := json.NewDecoder(http.MaxBytesReader(nil, resp.Body, maxBody))
	for i := range results {
		if err := answers.Decode(&results[i]); err != nil {
			return nil, &UnreachableError{Server: c.Server(), Err: fmt.Errorf("the answer ends behind %d of %d lines: %w", i, len(results), err)}
		}
	}
	return results, nil
}
