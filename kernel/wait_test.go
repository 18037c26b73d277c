package kernel

import (
	"testing"

	"loam/abi/linux"
	"loam/kernel/signal"
	"loam/kernel/thread"
)

// A thread to which another CPU has sent a signal while it entered a blocking call does not wait, since nothing
// would interrupt the wait. If the thread blocks the signal, it waits.
func TestWaitWithSignal(t *testing.T) {
	for _, c := range []struct {
		what          string
		pending, mask signal.Set
		returns       bool
	}{
		{"no signal", 0, 0, false},
		{"a signal", signal.Of(signal.Urgent), 0, true},
		{"a signal that is held back", signal.Of(signal.Urgent), signal.Of(signal.Urgent), false},
		{"one of two held back", signal.Of(signal.Urgent) | signal.Of(signal.Child), signal.Of(signal.Child), true},
	} {
		k := &core{}
		threads := &k.threads
		id, _ := threads.New()
		threads.At(id).Pending, threads.At(id).Mask = uint64(c.pending), uint64(c.mask)
		p := &cpu{current: id}
		result, returns := k.wait(p, keySleep, thread.Never, 0)
		if returns != c.returns || returns && result != -int64(linux.EINTR) {
			t.Errorf("%s: result %d, returns %v", c.what, result, returns)
		}
		if waits := threads.At(id).State == thread.Waiting && p.current == thread.None; waits == c.returns {
			t.Errorf("%s: waits %v", c.what, waits)
		}
	}
}
