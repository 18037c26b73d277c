//go:build linux

package interop

import (
	"sync/atomic"

	"loam/link"
)

// cut is a device that can be cut off. From then on, all frames in both directions are lost, and
// neither end notices.
type cut struct {
	link.Device
	queues []link.Queue
	gone   atomic.Bool
}

func newCut(d link.Device) *cut {
	c := &cut{Device: d}
	for _, q := range d.Queues() {
		c.queues = append(c.queues, &cutQueue{q, c})
	}
	return c
}

func (c *cut) Queues() []link.Queue { return c.queues }

type cutQueue struct {
	link.Queue
	cut *cut
}

func (q *cutQueue) Recv(fs []*link.Frame) (int, error) {
	for {
		n, err := q.Queue.Recv(fs)
		if err != nil || !q.cut.gone.Load() {
			return n, err
		}
		link.FreeAll(fs[:n])
	}
}

func (q *cutQueue) Send(fs []*link.Frame) (int, error) {
	if !q.cut.gone.Load() {
		return q.Queue.Send(fs)
	}
	link.FreeAll(fs)
	return len(fs), nil
}
