// Package search reads and evaluates the language in which people search for events.
//
// # Contract
//
// [Parse] turns a text into an [Expr]. All terms have to match, unless OR is between them:
//
//	word "a phrase"          the note, reason, name of the object or node contains it
//	field:value field=value  a field has the value; * stands for any text
//	field:a,b                it has one of the values
//	field!=value             it has none of them
//	-term NOT term           the term does not match
//	a OR b, a AND b, ( )     AND binds more closely than OR, NOT more closely than AND
//
// Upper and lower case do not matter in words and in the values of dimensions; names of objects, UIDs, fieldPaths,
// patterns of notes and labels are compared as they are written. What looks like a field, but is none, is a word: notes
// are full of colons.
//
// [Expr.Written] has the terms of a text as people see them, and [Expr.Tree] its meaning for who matches events outside
// of the server: the console asks for both. testdata/sentences.json has texts with their meaning for the tests of both.
//
// # Errors
//
// An [Error] says what is wrong, at which character, and what would be right.
//
// # Concurrency
//
// An Expr does not change once it is parsed, and may be shared.
//
// # What it does not know
//
// Where events are stored, and which of its terms a store may find fast.
package search
