module tidings.example/eventsvc

go 1.26.0

require (
	// tests: checks histories for linearizability
	github.com/anishathalye/porcupine v1.3.1
	// tails of Loki's API over WebSockets, without dependencies of its own
	github.com/coder/websocket v1.8.15
	// OpenAPI documents in protobuf, as kubectl reads them
	github.com/google/gnostic-models v0.7.1
	// tests: readable differences
	github.com/google/go-cmp v0.7.0
	// uids of events
	github.com/google/uuid v1.6.0
	// the store on PostgreSQL
	github.com/jackc/pgx/v5 v5.12.0
	// zstd: old events compressed on the disk
	github.com/klauspost/compress v1.20.4
	// asked for: HTTP
	github.com/labstack/echo/v4 v4.16.0
	// metrics
	github.com/prometheus/client_golang v1.25.0
	// asked for: the event store
	go.etcd.io/bbolt v1.5.0
	// policy files, with the line of each mistake
	go.yaml.in/yaml/v3 v3.0.6
	// one trade for Basic attempts that are alike
	golang.org/x/sync v0.25.0
	// the size of terminals
	golang.org/x/sys v0.50.0
	// dumps in UTF-16 and Windows-1252
	golang.org/x/text v0.44.0
	// token buckets of the create rates
	golang.org/x/time v0.16.0
	// encodes the OpenAPI documents
	google.golang.org/protobuf v1.36.12
	// RFC 6902 and 7386, the version that Kubernetes uses
	gopkg.in/evanphx/json-patch.v4 v4.13.0
	// the Event types
	k8s.io/api v0.37.2
	// wire formats, selectors, errors, managed fields
	k8s.io/apimachinery v0.37.2
	// schema types of the OpenAPI documents
	k8s.io/kube-openapi v0.0.0-20260821135717-be32def86098
	// what is remembered of Basic attempts, and of events by a mirror
	k8s.io/utils v0.0.0-20260626114624-be93311217bd
	// strict JSON as Kubernetes reads it
	sigs.k8s.io/json v0.0.0-20260909141634-11ed52e25bc5
	// YAML bodies and answers
	sigs.k8s.io/yaml v1.6.0
	// what both services use
	tidings.example/shared v0.0.0
)

require (
	github.com/KimMachineGun/automemlimit v1.0.1 // indirect
	github.com/alecthomas/kong v1.17.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/davecgh/go-spew v1.1.2-0.20180830191138-d8f796af33cc // indirect
	github.com/decred/dcrd/dcrec/secp256k1/v4 v4.4.1 // indirect
	github.com/fxamacker/cbor/v2 v2.9.1 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-openapi/jsonpointer v1.0.2 // indirect
	github.com/go-openapi/jsonreference v1.0.2 // indirect
	github.com/go-openapi/swag v0.29.2 // indirect
	github.com/go-openapi/swag/cmdutils v0.29.2 // indirect
	github.com/go-openapi/swag/conv v0.29.2 // indirect
	github.com/go-openapi/swag/fileutils v0.29.2 // indirect
	github.com/go-openapi/swag/jsonutils v0.29.2 // indirect
	github.com/go-openapi/swag/loading v0.29.2 // indirect
	github.com/go-openapi/swag/mangling v0.29.2 // indirect
	github.com/go-openapi/swag/netutils v0.29.2 // indirect
	github.com/go-openapi/swag/pools v0.29.2 // indirect
	github.com/go-openapi/swag/stringutils v0.29.2 // indirect
	github.com/go-openapi/swag/typeutils v0.29.2 // indirect
	github.com/go-openapi/swag/yamlutils v0.29.2 // indirect
	github.com/go-openapi/testify/enable/yaml/v2 v2.8.0 // indirect
	github.com/goccy/go-json v0.10.6 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/kylelemons/godebug v1.1.0 // indirect
	github.com/labstack/gommon v0.5.0 // indirect
	github.com/lestrrat-go/blackmagic v1.0.4 // indirect
	github.com/lestrrat-go/httpcc v1.0.1 // indirect
	github.com/lestrrat-go/httprc v1.0.6 // indirect
	github.com/lestrrat-go/iter v1.0.2 // indirect
	github.com/lestrrat-go/jwx/v2 v2.1.7 // indirect
	github.com/lestrrat-go/option v1.0.1 // indirect
	github.com/mattn/go-colorable v0.1.16 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/pbnjay/memory v0.0.0-20210728143218-7b4eea64cf58 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/segmentio/asm v1.2.1 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
	k8s.io/klog/v2 v2.140.0 // indirect
	sigs.k8s.io/randfill v1.0.0 // indirect
	sigs.k8s.io/structured-merge-diff/v6 v6.4.2 // indirect
)

replace tidings.example/shared => ../shared
