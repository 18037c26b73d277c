// Package house keeps the rules of the tree, as tests: there is nothing in it
// to call. Run them with
//
//	go test ./internal/house
//
// A rule that a test keeps need not be remembered or reviewed. Each file holds
// one family of them:
//
//	layer_test.go   who may import whom: the map of the tree
//	pure_test.go    wire and the protocol machines have no clock, lock or goroutine
//	source_test.go  format, sizes, package comments, no reminders left behind
//	unsafe_test.go  where unsafe and go:nosplit may stand
//	prose_test.go   files, functions and links that the documents name exist
//	outside_test.go a module of somebody else's can import ours, as the README says
//
// tree_test.go finds the packages and files for all of them. Each rule is a
// function from source to complaints, and is itself tested on a small text that
// breaks it: a rule that can no longer fail keeps nothing.
//
// When a rule is in the way of good code, change the rule here, in a commit of
// its own that says why.
package house
