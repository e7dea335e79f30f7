package codec

import "encoding/json"

// Deleter is who has deleted an event.
type Deleter struct {
	User   string `json:"user,omitempty"`   // the subject of the token
	Client string `json:"client,omitempty"` // its client id
	Audit  string `json:"audit,omitempty"`  // the id of the request, as the audit log has it
}

// Stored returns the form that is stored with the deletion, which is not empty.
func (d Deleter) Stored() []byte {
	b, _ := json.Marshal(d) // texts: no error
	return b
}

// DeleterOf reads the stored form.
func DeleterOf(b []byte) (d Deleter, err error) { return d, json.Unmarshal(b, &d) }
