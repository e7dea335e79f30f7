package changes

// For the tests.
var (
	Workload = workload
	Surprise = surprise
	Onset    = onset
)
