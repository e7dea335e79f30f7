module tidings.example/deploy/bench

go 1.26.0

require (
	// tests: readable differences
	github.com/google/go-cmp v0.7.0
	// a floor: what the HTTP framework alone can do
	github.com/labstack/echo/v4 v4.16.0
	// a floor: what the store alone can do
	go.etcd.io/bbolt v1.5.0
	// hashes of the clients' secrets, and the floor of bcrypt
	golang.org/x/crypto v0.58.0
	// headers of the load's HTTP/2
	golang.org/x/net v0.62.0
	// goroutines that end with the first error
	golang.org/x/sync v0.24.0
	// CPU, disk and terminal, from the kernel
	golang.org/x/sys v0.49.0
)

require (
	github.com/labstack/gommon v0.5.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	golang.org/x/text v0.43.0 // indirect
)
