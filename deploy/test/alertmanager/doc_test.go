// Package alertmanager_test runs eventsvc alerts with the real Alertmanager: two that are clustered, and a receiver
// that keeps what arrives; and the profile alerts of docker-compose.yml, with mail.
//
// It has a module of its own, because Alertmanager brings a client of each service that it can notify. The first build
// takes about eight minutes of one core. The module lacks the files of Alertmanager's web page, which a build makes
// from its sources: the tests build a copy with an empty page.
package alertmanager_test
