package bolt

// A plan is a way to find the events of a list.
type plan uint8

const (
	// walkKeys goes over the keys of the range and looks at the record of each.
	walkKeys plan = iota
	// walkFound goes over the keys of the range too, but looks only at the records of versions
	// that were found in the columns.
	walkFound
	// sortFound looks up all versions that were found, and sorts them by key. That is done once
	// for all pages of a list.
	sortFound
)

// What the steps of a plan take, in nanoseconds. They were measured in a store of a million
// events; their ratios decide.
const (
	keyCost    = 80    // to pass over a key
	recordCost = 4000  // to look up and verify the record of a key
	madeCost   = 30000 // the same, if it has to be made of columns
	chunkCost  = 5000  // to find out which rows of a chunk of columns match
	matchCost  = 5000  // to look up a version that was found, and whether it is the newest one
)

const (
	// fewEvents is the number of events in a range whose records are looked at without
	// looking at columns first.
	fewEvents = 100
	// sampleChunks is the number of chunks that tell about how many versions match.
	sampleChunks = 16
	// chunkKeys is the number of keys of a namespace for each chunk of columns up to which only the rows of these keys
	// are looked at.
	chunkKeys = 8
	// maxSorted bounds the time of a call and what is remembered: versions beyond it are
	// not sorted.
	maxSorted = 1 << 15
)

// An estimate is what is known of a list before its records are read.
type estimate struct {
	inRange  int64   // events that exist in the list's namespace
	limit    int64   // of the page; 0: none
	versions int64   // that match, superseded ones too
	chunks   int64   // that have to be looked at to find them; 0: they were found
	made     float64 // share of the records that have to be made of columns
}

// plan returns the plan that takes the least time, as if the versions were spread evenly over
// the keys.
func (e estimate) plan() plan {
	keys := float64(e.inRange)
	if limit := float64(e.limit); limit > 0 && e.versions > 0 {
		keys = min(keys, keys*limit/float64(e.versions))
	}
	switch {
	case keys*(recordCost+e.made*madeCost) <= float64(e.chunks*chunkCost):
		return walkKeys
	case e.versions <= maxSorted && float64(e.versions)*matchCost <= keys*keyCost:
		return sortFound
	}
	return walkFound
}
