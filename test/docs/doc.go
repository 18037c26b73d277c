// Package docs runs the commands in the documents, as tests. It has no other code.
//
// A document takes part if it has a block marked "console":
//
//	```console
//	$ loam version
//	loam …
//	```
//
// A line that begins with "$ " is a command. "sudo" works in it, because the test is root in its
// namespaces. It must exit with status
// 0. The lines below it are its expected output: each must be part of a line of the output, in this
// order; "…" stands for any text within a line. Other lines of output are ignored.
//
//   - The commands of a document run in one shell, in order. It starts in the root of the tree. HOME is a
//     temporary folder.
//   - "console server" is one command that keeps running. The next command starts when all expected lines
//     have appeared. At the next heading the server gets SIGINT, and must end.
//   - "file=NAME" after the language of a block writes the block to that file in the current folder.
//   - "text" is a block that is no command.
//   - Any other block needs a line "<!-- not run: reason -->" above it.
//
// Everything runs in a network namespace without a connection to the outside.
package docs
