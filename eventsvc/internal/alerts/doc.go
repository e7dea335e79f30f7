// Package alerts turns events into alerts and hands them to Alertmanager, which groups, silences and routes them.
//
// # Contract
//
// A [Rule] says by a search which events are occurrences of an alert, how many in which time begin it, and after what
// silence it is over. Alerts are the same if their labels are: these are templates over the event, as annotations are.
// [Watcher.Run] watches a server from a cursor, and sends each alert to every Alertmanager: when it begins, again each
// minute, and when it is over. Times are those of the observations, whenever an event arrives. [Try] says what rules
// would have sent.
//
// The files: rules.go reads rules, facts.go has what templates can use, follow.go follows a server, book.go has the
// alerts that go on and the cursor.
//
// # Once, and not lost
//
// The file of the cursor has the position in the server's history with all that was counted up to there, so that a
// process that was killed computes the same again: the same labels, which are one alert to Alertmanager, with the same
// begin. Two processes with the same rules send the same, also if they share the file. An alert stays until one
// Alertmanager has taken it, or for [Config.Wait]; what is given up is counted and logged. What a server no longer
// keeps is an alert of its own, EventsMissed.
//
// # Time
//
// An alert ends by silence, or begins by "for", when the server is known to have told everything up to that time: the
// clock of rules is the version that the server had at a time, once that version is reached. So an outage ends nothing.
// Alertmanager tells nobody of an alert that ends within its group_wait; one that is over before it was taken is
// therefore held open for some minutes.
//
// # Text of events
//
// Anybody who may create an event chooses its text. In alerts it has no control or formatting characters, is valid
// UTF-8 of bounded length, and what chats and browsers take for markup or a mention is replaced: see [Facts]. Only the
// link to the console is made of it, as parameters of a URL.
package alerts
