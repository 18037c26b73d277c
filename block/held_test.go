package block_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"weak"

	"loam/block"
	"loam/block/fault"
	"loam/block/memory"
)

// Memory that a device which cannot be stopped may still access is never freed, whatever call has used it.
func TestHeldMemoryIsKept(t *testing.T) {
	calls := map[string]func(o *block.IO, p []byte) error{
		"ReadAt":      func(o *block.IO, p []byte) error { _, err := o.ReadAt(p, 0); return err },
		"WriteAt":     func(o *block.IO, p []byte) error { _, err := o.WriteAt(p, 0); return err },
		"ReadPart":    func(o *block.IO, p []byte) error { return o.ReadPart(p, 0) },
		"Transfer":    func(o *block.IO, p []byte) error { _, err := o.Transfer(block.Write, block.Vector{p}, 0); return err },
		"WritePieces": func(o *block.IO, p []byte) error { return o.WritePieces([]block.Piece{{Offset: 0, Data: p}}) },
	}
	for name, call := range calls {
		for _, cause := range []error{fmt.Errorf("%w: %w", block.ErrGone, block.ErrHeld), block.ErrIO} {
			d := fault.New(memory.New(1<<20, memory.Config{}), fault.Config{Rules: []fault.Rule{{Times: 1, Err: cause}}})
			p := make([]byte, 4096)
			first := weak.Make(&p[0])
			if err := call(block.NewIO(d), p); !errors.Is(err, cause) {
				t.Errorf("%s: %v", name, err)
			}
			d.Close()
			p = nil
			for range 3 {
				runtime.GC()
			}
			if kept := first.Value() != nil; kept != errors.Is(cause, block.ErrHeld) {
				t.Errorf("%s, %v: memory is kept: %v", name, cause, kept)
			}
		}
	}
}

// queues is a device that notes the queue of the last request.
type queues struct {
	*memory.Device
	last int
}

func (q *queues) Queues() int { return 4 }

func (q *queues) Submit(queue int, rs []*block.Request) {
	q.last = queue
	q.Device.Submit(0, rs)
}

// After calls at the same time, a program that does one thing at a time uses one queue.
func TestQueueAfterBurst(t *testing.T) {
	d := &queues{Device: memory.New(1<<20, memory.Config{})}
	o := block.NewIO(d)
	block.Burst(o, 6)
	used := map[int]bool{}
	for range 20 {
		if err := o.Flush(); err != nil {
			t.Fatal(err)
		}
		used[d.last] = true
	}
	if len(used) != 1 {
		t.Errorf("%d queues are used", len(used))
	}
}
