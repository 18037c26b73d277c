package event

import (
	"sync"
	"sync/atomic"
	"testing"

	"loam/posix/file"
)

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
	r := file.NewProcessRef(7)
	var first, second, closed, late int
	for _, n := range []*int{&first, &second, &closed} {
		f := NewProcess(r)
		f.Queue().Add(notified(n))
		f.Queue().Add(notified(new(int)))
		if n == &closed {
			f.Close()
		}
	}
	f := NewProcess(r)
	f.Close()
	f.Queue().Add(notified(&late)) // as a call that has looked the descriptor up before
	r.End()
	if first != 1 || second != 1 || closed != 0 || late != 0 {
		t.Errorf("%d, %d, %d and %d notifications, want 1, 1, 0 and 0", first, second, closed, late)
	}
}

// A pidfd that is closed while a waiter is added is not kept by the process.
func TestCloseOfPolledPidfd(t *testing.T) {
	r := file.NewProcessRef(7)
	var late atomic.Int32
	for range 1000 {
		f := NewProcess(r)
		w := &file.Watch{Notify: func(file.Events) { late.Add(1) }}
		var both sync.WaitGroup
		both.Go(func() { f.Queue().Add(w) })
		both.Go(f.Close)
		both.Wait()
	}
	r.End()
	if n := late.Load(); n != 0 {
		t.Errorf("%d notifications, want 0", n)
	}
}
