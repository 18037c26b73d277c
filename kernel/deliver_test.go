package kernel

import (
	"testing"

	"loam/kernel/signal"
	"loam/kernel/thread"
)

// A signal to the program is delivered to a thread that does not block it. If all threads block it, it stays
// pending for one of them, even if the CPU that received it is idle.
func TestListener(t *testing.T) {
	const n = signal.Number(15)
	k := &core{}
	threads := &k.threads
	if id := k.listener(n); id != thread.None {
		t.Errorf("there are no threads, and thread %d is told", id)
	}
	gone, _ := threads.New()
	first, _ := threads.New()
	second, _ := threads.New()
	threads.End(gone)
	if id := k.listener(n); id != first {
		t.Errorf("thread %d is told, want %d", id, first)
	}
	threads.At(first).Mask = uint64(signal.Of(n))
	if id := k.listener(n); id != second {
		t.Errorf("thread %d is told, want %d, which does not hold it back", id, second)
	}
	threads.At(second).Mask = uint64(signal.Of(n))
	if id := k.listener(n); id != first {
		t.Errorf("all hold it back, and thread %d is told, want %d", id, first)
	}
}
