package file

import (
	"runtime"
	"testing"
)

// The end of a process is notified once to each registered watch. A watch that is added later is not kept.
func TestProcessRef(t *testing.T) {
	r := NewProcessRef(7)
	n := 0
	count := func() *Watch { return &Watch{Notify: func(Events) { n++ }} }
	removed := count()
	r.AddWatch(count())
	r.AddWatch(removed)
	r.AddWatch(count())
	r.RemoveWatch(removed)
	if r.Ended() {
		t.Error("the process has ended")
	}
	r.End()
	<-r.Done()
	late := count()
	r.AddWatch(late)
	r.RemoveWatch(late)
	if n != 2 || !r.Ended() || r.watches != nil {
		t.Errorf("%d notifications, want 2; ended %v, %d watches are left", n, r.Ended(), len(r.watches))
	}
}

// The cost of a watch does not grow with the number of watches: one program may have a million pidfds of a process.
func TestManyWatchesOfProcess(t *testing.T) {
	const count, most = 4096, 1024 // most is in bytes for each watch; a copy of a list would have up to 32 KiB
	r := NewProcessRef(7)
	watches := make([]Watch, count)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range watches {
		r.AddWatch(&watches[i])
	}
	for i := range watches {
		r.RemoveWatch(&watches[i])
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > count*most {
		t.Errorf("%d bytes for %d watches, want at most %d", n, count, count*most)
	}
}
