package tcp

import "errors"

// Why a connection ended.
var (
	ErrReset       = errors.New("connection reset by peer")
	ErrRefused     = errors.New("connection refused")
	ErrTimeout     = errors.New("connection timed out")
	ErrAborted     = errors.New("connection aborted")
	ErrUnreachable = errors.New("destination unreachable")
)

// reason is one of these errors in a byte.
type reason uint8

var reasons = [...]error{nil, ErrReset, ErrRefused, ErrTimeout, ErrAborted, ErrUnreachable}

func (r reason) err() error { return reasons[r] }

func reasonOf(err error) reason {
	for i, e := range reasons {
		if e == err {
			return reason(i)
		}
	}
	panic("tcp: not a reason: " + err.Error())
}
