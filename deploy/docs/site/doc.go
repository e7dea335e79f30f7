// Package site renders the manual: the pages below deploy/docs and the READMEs.
//
// # Contract
//
// [Read] finds and parses the pages. [Manual.Help] renders them for the console, which
// serves them below /console/help/ from what the build embeds; [Manual.Static] renders the
// same pages, with pictures, for any web server. Both have a search index, which
// search.js reads in the browser.
//
// A link from page to page leads to the rendered page. A link to another file of the
// repository becomes its text, because a reader of the site does not have the file.
//
// # What it does not know
//
// Whether links lead anywhere and how pages are worded: its tests check that.
package site
