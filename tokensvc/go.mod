module tidings.example/tokensvc

go 1.26.0

require (
	// tests: readable differences
	github.com/google/go-cmp v0.7.0
	// jti and registration ids
	github.com/google/uuid v1.6.0
	// PostgreSQL's error codes and the pool under gorm's driver
	github.com/jackc/pgx/v5 v5.12.0
	// asked for: HTTP
	github.com/labstack/echo/v4 v4.16.0
	// asked for: keys and signatures
	github.com/lestrrat-go/jwx/v2 v2.1.7
	// metrics
	github.com/prometheus/client_golang v1.25.0
	// asked for: bcrypt
	golang.org/x/crypto v0.59.0
	// tests: a stock client
	golang.org/x/oauth2 v0.38.0
	// one compare for attempts that are alike
	golang.org/x/sync v0.25.0
	// hash-secret asks for a secret without showing it
	golang.org/x/term v0.48.0
	// the allowance of failed attempts
	golang.org/x/time v0.16.0
	// asked for: gorm on PostgreSQL
	gorm.io/driver/postgres v1.6.3
	// asked for: reads the clients table
	gorm.io/gorm v1.31.2
	// the clients file
	sigs.k8s.io/yaml v1.6.0
	// what both services use
	tidings.example/shared v0.0.0
)

require (
	github.com/KimMachineGun/automemlimit v1.0.1 // indirect
	github.com/alecthomas/kong v1.17.0 // indirect
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/decred/dcrd/dcrec/secp256k1/v4 v4.4.1 // indirect
	github.com/goccy/go-json v0.10.6 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	github.com/labstack/gommon v0.5.0 // indirect
	github.com/lestrrat-go/blackmagic v1.0.4 // indirect
	github.com/lestrrat-go/httpcc v1.0.1 // indirect
	github.com/lestrrat-go/httprc v1.0.6 // indirect
	github.com/lestrrat-go/iter v1.0.2 // indirect
	github.com/lestrrat-go/option v1.0.1 // indirect
	github.com/mattn/go-colorable v0.1.16 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/pbnjay/memory v0.0.0-20210728143218-7b4eea64cf58 // indirect
	github.com/prometheus/client_model v0.6.3 // indirect
	github.com/prometheus/common v0.72.0 // indirect
	github.com/prometheus/procfs v0.22.0 // indirect
	github.com/segmentio/asm v1.2.1 // indirect
	github.com/valyala/bytebufferpool v1.0.0 // indirect
	github.com/valyala/fasttemplate v1.2.2 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace tidings.example/shared => ../shared
