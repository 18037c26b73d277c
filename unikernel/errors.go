package unikernel

import "fmt"

// Error is what a user can do something about: one line that says what is wrong
// and what to do next.
type Error struct {
	What   string
	Next   string
	Output string // all that the go command printed, if it did
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
