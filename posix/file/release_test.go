package file

import (
	"runtime/debug"
	"testing"
)

// link is a file that keeps a description, as a socket with a message does.
type link struct {
	File
	next   *Description
	closed *int
	q      Queue
}

func (l *link) Queue() *Queue { return &l.q }

func (l *link) CloseCarrier() []*Description {
	*l.closed++
	if l.next == nil {
		return nil
	}
	return []*Description{l.next}
}

// The release of a long chain of files closes each file once, on a small stack.
func TestReleaseOfChain(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(64 << 10))
	const length = 100_000
	closed := 0
	var o *Description
	for range length {
		o = NewDescription(&link{next: o, closed: &closed}, 0)
		o.Hold()
	}
	if o.Release(); closed != length {
		t.Errorf("%d of %d files are closed", closed, length)
	}
}
