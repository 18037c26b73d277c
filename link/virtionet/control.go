package virtionet

import (
	"encoding/binary"
	"fmt"
	"time"

	"loam/driver"
	"loam/driver/virtio"
)

// control is the control queue (virtio 1.2 section 5.1.6.5). It carries a single command, when the device is
// opened.
type control struct {
	queue  *virtio.Queue
	buffer driver.Buffer
}

const (
	controlDepth = 16
	controlBound = 5 * time.Second // longest wait for an answer

	classMQ      = 4
	commandPairs = 0
	acknowledged = 0
)

func newControl(m driver.Machine, q *virtio.Queue) (*control, error) {
	b, err := m.Allocate(16, 16)
	if err != nil {
		return nil, err
	}
	return &control{queue: q, buffer: b}, nil
}

func (c *control) free(m driver.Machine) {
	if c != nil && c.buffer.Bytes != nil {
		m.Free(c.buffer)
		c.buffer = driver.Buffer{}
	}
}

// usePairs sets the number of pairs of queues that the card uses (virtio 1.2 section 5.1.6.5.5). Without it, a
// card with several pairs uses one.
func (d *Device) usePairs() error {
	if !d.card.Has(featureMQ) {
		return nil
	}
	c := d.control
	b := c.buffer.Bytes
	const answer = 4
	b[0], b[1] = classMQ, commandPairs
	binary.LittleEndian.PutUint16(b[2:], uint16(len(d.pairs)))
	b[answer] = ^byte(acknowledged)
	c.queue.Add([]driver.Segment{{Address: c.buffer.Address, Size: 2}, {Address: c.buffer.Address + 2, Size: 2}},
		[]driver.Segment{{Address: c.buffer.Address + answer, Size: 1}})
	c.queue.Kick()
	err := c.queue.Wait(controlBound, d.done)
	if err == nil {
		_, _, _, err = c.queue.Take()
	}
	if err == nil && b[answer] != acknowledged {
		err = fmt.Errorf("%w: it does not use %d pairs of queues", virtio.ErrFeatures, len(d.pairs))
	}
	if err != nil {
		return fmt.Errorf("%v: %w", d.card, err)
	}
	return nil
}
