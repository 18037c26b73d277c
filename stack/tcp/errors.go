package tcp

import "errors"

// Reasons why a connection ended.
var (
	ErrReset       = errors.New("connection reset by peer")
	ErrRefused     = errors.New("connection refused")
	ErrTimeout     = errors.New("connection timed out")
	ErrAborted     = errors.New("connection aborted")
	ErrUnreachable = errors.New("destination unreachable")
	ErrPipe        = errors.New("connection reset by peer after the end of its stream") // EPIPE on Linux
)

// reason identifies one of these errors, or none, in a byte.
type reason uint8

const (
	finished reason = iota // the connection has not ended, or has ended in order
	wasReset
	wasRefused
	timedOut
	aborted
	unreachable
	brokenPipe
)

var reasonErrors = [...]error{
	finished:    nil,
	wasReset:    ErrReset,
	wasRefused:  ErrRefused,
	timedOut:    ErrTimeout,
	aborted:     ErrAborted,
	unreachable: ErrUnreachable,
	brokenPipe:  ErrPipe,
}

func (r reason) err() error { return reasonErrors[r] }
