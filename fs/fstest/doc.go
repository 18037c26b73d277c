// Package fstest judges a file system: every fs.FileSystem that can be written
// passes it.
//
// Most of it is scripts (scripts.go): a line is a call and what it must lead
// to. They are run through an fs.View, so that they hold for the file system and
// the tree together, as a program sees them.
//
//	mkdir a 0755
//	write a/b hello         make or cut the file and write; a word is the content
//	read a/b hello          the whole content, - when it is empty
//	rm a -> EISDIR          an error that must come
//	rm @256 -> ENAMETOOLONG a name of 256 bytes
//
// The commands are in command.go. What is told in numbers (many names, holes,
// concurrent writers) is ordinary tests in numbers.go, and random.go compares long
// random runs of calls with the same calls on Linux.
package fstest
