// Package console drives the web page of eventsvc in a real browser.
package console
