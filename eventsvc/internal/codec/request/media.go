package request

// Media is a wire format. The zero value is JSON.
type Media uint8

// The wire formats, in the order in which the server prefers them.
const (
	JSON Media = iota
	YAML
	Protobuf
)

// MediaTypes are the names of the wire formats.
var MediaTypes = [...]string{
	JSON: "application/json", YAML: "application/yaml", Protobuf: "application/vnd.kubernetes.protobuf",
}

// Magic begins every protobuf body. A runtime.Unknown follows, which says what
// the message in it is.
const Magic = "k8s\x00"
