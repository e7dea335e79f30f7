// Package codec turns events into bytes and back: the stored form, and every
// answer, in both views and every wire format. Package request reads what clients
// send, package fields keeps managed fields; [Codec] has all of it.
//
// # The stored form
//
// An event is encoded once, when it is written, and after that only copied. A
// stored value holds the JSON and the protobuf of the events/v1 view. Both have
// holes where the revision and the group of this service belong:
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
//	  position of the resourceVersion in json, and of field 6 in meta
//	  number of own entries, and for each:
//	    position of the apiVersion in json, of the entry in meta, size of the
//	    entry without its apiVersion, position of field 3 in the entry
//	  length of the value of each of the 15 members in json, 0 if absent
//	  length of the payload of each of the fields 2 to 15 in rest, 0 if absent
//
// Each position in the header is counted from the one before it. Positions are
// therefore in order, whatever bytes a damaged header has.
//
// The first hole is the resourceVersion. It is the revision, which the store
// assigns after the value has been made. The others are the apiVersions of own
// entries: managed fields entries that were made through this service's group. They
// are left out so that stored data do not depend on the group domain. In protobuf
// a hole is a whole field, because its length comes before it. For the same reason
// tag and length of an own entry are left out.
//
// The members of the two views differ in names, order and numbers, but not in the
// bytes of their values. So core/v1 is put together from the same values by the
// two tables of lengths. The one exception is the count of a series: core/v1
// leaves out a zero.
//
// Kind and apiVersion are not stored: list items have none, and all other answers
// begin with them. Every length is compared with the bytes there are when a value
// is read, so a damaged value is an error and never a panic.
package codec
