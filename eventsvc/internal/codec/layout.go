package codec

import "google.golang.org/protobuf/encoding/protowire"

// The members of an event in the order of events/v1. Counted from one they are its
// protobuf field numbers.
const (
	memberMetadata = iota
	memberEventTime
	memberSeries
	memberReportingController
	memberReportingInstance
	memberAction
	memberReason
	memberRegarding
	memberRelated
	memberNote
	memberType
	memberSource
	memberFirstTimestamp
	memberLastTimestamp
	memberCount
	numMembers
)

// memberNames are the JSON names in events/v1.
var memberNames = [numMembers]string{
	"metadata", "eventTime", "series", "reportingController", "reportingInstance", "action", "reason", "regarding",
	"related", "note", "type", "deprecatedSource", "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedCount",
}

// coreMembers is core/v1: its members in their order, which again is that of
// its protobuf fields. Empty is the JSON of a member that the stored form omits but
// core/v1 does not; "" if core/v1 omits it too.
var coreMembers = [numMembers]struct {
	member int
	head   string // the JSON in front of the value
	empty  string
}{
	{memberMetadata, `"metadata":`, ""},
	{memberRegarding, `,"involvedObject":`, ""},
	{memberReason, `,"reason":`, ""},
	{memberNote, `,"message":`, ""},
	{memberSource, `,"source":`, ""},
	{memberFirstTimestamp, `,"firstTimestamp":`, ""},
	{memberLastTimestamp, `,"lastTimestamp":`, ""},
	{memberCount, `,"count":`, ""},
	{memberType, `,"type":`, ""},
	{memberEventTime, `,"eventTime":`, ""},
	{memberSeries, `,"series":`, ""},
	{memberAction, `,"action":`, ""},
	{memberRelated, `,"related":`, ""},
	{memberReportingController, `,"reportingComponent":`, `""`},
	{memberReportingInstance, `,"reportingInstance":`, `""`},
}

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
