// Package cluster breaks the parts of docker compose --profile cluster one after the other, while clients write and
// watch. The test needs Docker: E2E_COMPOSE=1 builds the images, E2E_COMPOSE=built takes those that are there.
package cluster
