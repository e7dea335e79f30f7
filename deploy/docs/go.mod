module tidings.example/deploy/docs

go 1.26.0

require (
	// readable differences
	github.com/google/go-cmp v0.7.0
	// renders the manual
	github.com/yuin/goldmark v1.8.7
)
