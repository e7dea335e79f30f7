// Package console drives the web page of eventsvc in a browser, as a person does, against an eventsvc and a tokensvc
// that it builds and starts on this machine.
//
// Tests open a [tab] each, in a profile of its own, of one browser for all. Whatever a page should not do fails its
// test: a violation of the Content-Security-Policy, an error in the console, an exception that nobody caught, a request
// that failed; unless the test has said that it expects it. Tests that only look share the services of [week]; those
// that write, or stop something, start their own with [startServices].
//
// With CONSOLE_SCREENSHOTS=DIR, screenshots are written there. They need chromium (Debian: chromium fonts-inter); the
// scripts are checked with tsc and tested with node (node-typescript nodejs).
package console
