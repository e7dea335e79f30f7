package codec

import (
	"google.golang.org/protobuf/encoding/protowire"
	eventsv1 "k8s.io/api/events/v1"

	"tidings.example/eventsvc/internal/event"
)

// Indexes of members that need care, in the order of [event.Members].
const (
	memberMetadata   = 0
	memberSeries     = 2
	memberController = 3
	memberInstance   = 4
	memberNote       = 9
	memberCount      = 14
	numMembers       = event.NumMembers
)

// memberNames are the JSON names in events/v1.
var memberNames = names(event.EventsV1)

func names(v event.View) (names [numMembers]string) {
	for i, m := range event.Members(v, new(eventsv1.Event)) {
		names[i] = m.Name
	}
	return names
}

// coreOrder are the members in the order of core/v1, which again is that of its
// protobuf fields.
var coreOrder = [numMembers]int{memberMetadata, 7, 6, 9, 11, 12, 13, memberCount, 10, 1, memberSeries, 5, 8, memberController, memberInstance}

// coreHeads are the JSON in front of the value of each member in core/v1.
var coreHeads = func() (heads [numMembers]string) {
	for i, name := range names(event.CoreV1) {
		heads[i] = `,"` + name + `":`
	}
	heads[memberMetadata] = heads[memberMetadata][1:]
	return heads
}()

// jsonHead returns how many bytes of JSON stand in front of the value of an
// events/v1 member: a brace or comma, the name in quotes, a colon.
func jsonHead(member int) int { return len(memberNames[member]) + 4 }

// protoTag is a field number and a wire type. Every number that is needed here,
// but for the managed fields, fits in one byte.
func protoTag(field int, kind protowire.Type) byte { return byte(field)<<3 | byte(kind) }

// wireType is the protobuf wire type of a member, the same in both views.
func wireType(member int) protowire.Type {
	if member == memberCount {
		return protowire.VarintType
	}
	return protowire.BytesType
}
