// Package codec turns events into bytes and back: the stored form, and every
// answer, in both views and every wire format. Package request reads what clients
// send, package fields keeps managed fields; [Codec] has all of it.
//
// # The stored form
//
// An event is encoded once, when it is written, and after that only copied. A
// stored value holds the JSON and the protobuf of the events/v1 view, both with
// holes for what is not known or must not be kept when it is written:
//
//	value:
//	  format      1 byte, 1
//	  header      uvarints, see below
//	  json        {"metadata":{…"resourceVersion":"▯"…"apiVersion":"▯"…},"eventTime":…}
//	  meta        protobuf of ObjectMeta:      … ▯(6) … ▯(17) … ▯(3) …
//	  rest        protobuf of fields 2 to 15:  tag payload tag payload …
//
//	header:
//	  len(json) len(meta) len(rest)
//	  place of the resourceVersion in json, and of field 6 in meta
//	  number of own entries, and for each:
//	    place of the apiVersion in json, of the entry in meta, size of the
//	    entry without its apiVersion, place of field 3 in the entry
//	  length of the value of each of the 15 members in json, 0 if absent
//	  length of the payload of each of the fields 2 to 15 in rest, 0 if absent
//
// To the store a value has two parts: json, and meta with rest. Who answers with
// one of them has only that verified, with what is in front of json, and must
// not look at the other; see [Format.Uses].
//
// Places in the header are counted from the one before them, so that each is
// behind the other whatever the bytes are.
//
// The first hole is the resourceVersion: it is the revision that the store
// assigns after the value has been made. The others are the apiVersion of the
// managed fields entries that came through this service's own group: stored
// data do not depend on the group domain. In protobuf a hole is a whole field,
// because its length comes before it, and the head of an own entry is left out
// for the same reason.
//
// The members of the two views differ in names, order and numbers but, with one
// exception, not in their bytes, so core/v1 is pieced together from the same
// values by the two tables of lengths. The exception is the count of a series:
// core/v1 leaves out a zero.
//
// Kind and apiVersion are not stored: list items have none, and everything else
// gets them in front. A value is checked when it is read: every length against
// the bytes there are, so that a damaged one is an error and never a panic.
package codec
