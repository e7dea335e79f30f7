module tidings.example/deploy/test

go 1.26.0

// a file system below the services that forgets what was not synced
require github.com/hanwen/go-fuse/v2 v2.12.1

require golang.org/x/sys v0.28.0 // indirect
