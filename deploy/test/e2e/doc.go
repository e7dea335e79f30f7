// Package e2e holds the black-box tests of both services together.
//
// Every scenario runs against a pair of binaries that the tests start on free
// ports of this machine, and with E2E_COMPOSE=1 once more against the
// containers of docker-compose.yml, under a project name and ports of their
// own. E2E_COMPOSE=built takes the images that make image has built. Nothing in here imports the services.
package e2e
