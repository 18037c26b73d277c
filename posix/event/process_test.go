package event

import (
	"testing"

	"loam/posix/file"
)

// running is a process.
type running struct {
	ends  file.Queue
	ended bool
}

func (r *running) PID() int          { return 7 }
func (r *running) Ended() bool       { return r.ended }
func (r *running) Ends() *file.Queue { return &r.ends }

// notified returns a watch that counts its notifications, except for the close of a file.
func notified(n *int) *file.Watch {
	return &file.Watch{Notify: func(e file.Events) {
		if e&file.PollIn != 0 {
			*n++
		}
	}}
}

// The end of a process is reported to each pidfd that is open, and only once. A closed pidfd is not kept by the process.
func TestEndOfProcess(t *testing.T) {
	r := &running{}
	var first, second, closed int
	for _, n := range []*int{&first, &second, &closed} {
		f := NewProcess(r)
		f.Queue().Add(notified(n))
		f.Queue().Add(notified(new(int)))
		if n == &closed {
			f.Close()
		}
	}
	NewProcess(r).Close() // without a waiter
	r.ended = true
	r.ends.Notify(file.PollIn)
	if first != 1 || second != 1 || closed != 0 {
		t.Errorf("%d, %d and %d notifications, want 1, 1 and 0", first, second, closed)
	}
}
