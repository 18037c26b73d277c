package unikernel

import (
	"errors"
	"fmt"
	"strings"
)

// Error is what a user can do something about: one line that says what is wrong
// and what to do next.
type Error struct {
	What   string
	Next   string
	Output string // all that the go command printed, if it failed: What is of that
}

func (e *Error) Error() string {
	if e.Next == "" {
		return e.What
	}
	return e.What + ": " + e.Next
}

func errorf(next, format string, args ...any) error {
	return &Error{What: fmt.Sprintf(format, args...), Next: next}
}

// withoutFiles returns the error of go list about a package without files to build: there are
// none, or all are left out by their names or build tags.
func withoutFiles(err error) (*Error, bool) {
	var e *Error
	if !errors.As(err, &e) {
		return nil, false
	}
	return e, strings.Contains(e.Output, excludesAll) || strings.Contains(e.Output, "no Go files in ")
}
