package unikernel

import (
	"errors"
	"fmt"
	"strings"
)

// Error is an error that the user can act on. Its text is one line: what is wrong, and what to do.
type Error struct {
	What   string // the problem
	Next   string // advice: what the user can do; may be empty
	Output string // full output of the go command if it failed; What is derived from it
}

// Error implements error.
func (e *Error) Error() string {
	if e.Next == "" {
		return e.What
	}
	return e.What + ": " + e.Next
}

// errorf returns an *Error. Its field What is the formatted text, and its field Next is the parameter next.
func errorf(next, format string, args ...any) error {
	return &Error{What: fmt.Sprintf(format, args...), Next: next}
}

// withoutFiles returns the error of go list for a package without Go files to build. Either there are none,
// or file names and build tags exclude all of them.
func withoutFiles(err error) (*Error, bool) {
	var e *Error
	if !errors.As(err, &e) {
		return nil, false
	}
	return e, strings.Contains(e.Output, excludesAll) || strings.Contains(e.Output, "no Go files in ")
}
