// Package fstest is a test suite for file systems. Every writable fs.FileSystem passes it.
//
// Most tests are scripts (scripts.go). A line is a call and its expected result. Scripts run through an
// fs.View, so they test the file system together with the tree, as a program sees them.
//
//	mkdir a 0755
//	write a/b hello         create or truncate the file and write; a word is the content
//	read a/b hello          the whole content, - when it is empty
//	rm a -> EISDIR          an expected error
//	rm @256 -> ENAMETOOLONG a name of 256 bytes
//
// The commands are in command.go and files.go. Tests that need many names, holes or concurrency are Go
// code in numbers.go. random.go compares long random sequences of calls with the same calls on Linux.
package fstest
