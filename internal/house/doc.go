// Package house checks the rules of the tree, as tests. Its subpackage english extracts the
// prose of the tree, and command sample draws comments at random for a reader. Run the tests with
//
//	go test ./internal/house
//
// A rule that a test checks need not be remembered or reviewed. Each file holds one family of rules:
//
//	layer_test.go     which package may import which: the map of the tree
//	pure_test.go      wire and protocol state machines have no clock, lock or goroutine
//	source_test.go    format, sizes, package comments, no notes of work for later
//	unsafe_test.go    where unsafe and go:nosplit are allowed
//	linux_test.go     Linux's constants come from abi/linux
//	goroutine_test.go goroutines in a guest begin with a function of this module
//	prose_test.go     files, functions and links named in the documents exist
//	english_test.go   comments and documents are plain English; files named in comments exist
//	outside_test.go   another module can import this one, as docs/use/library.md describes
//
// tree_test.go finds the packages and files for all of them. Each rule is a function that returns
// complaints about source text. Each is itself tested on a small text that violates it, because a rule
// that can no longer fail is useless.
//
// If a rule prevents good code, change the rule here, in a commit of its own that says why.
package house
