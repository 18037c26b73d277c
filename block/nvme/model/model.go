// Package model is an NVM Express controller in the same process, for tests: the other side of
// loam/block/nvme, written from the same specification (1.4), without code of the driver.
//
// It does its work during the write to a doorbell, so it has no goroutine. It behaves correctly
// unless Controller.Next returns another Lie.
package model

import (
	"encoding/binary"
	"sync"

	virtio "loam/driver/virtio/model"
)

// Lie is a way to complete a command, correct or wrong.
type Lie uint8

// Values of Lie: the ways in which the model completes a command.
const (
	Truth    Lie = iota
	WrongID      // the completion has the identifier of another command
	Status       // the command completes with the given status, and is not executed
	Silence      // the command never completes
	Twice        // the command completes twice
	Quiet        // the command completes without an interrupt
	Fatal        // the command never completes; the controller reports a fatal error
	Vanish       // the command never completes; the controller is unplugged
	Spurious     // correctly, and with an interrupt of another vector too
	Lies         // number of ways to complete a command
)

// Controller is the device. Its exported fields are set before a driver uses it.
type Controller struct {
	Data     []byte // contents of namespace 1, in blocks of 512 bytes
	Queues   int    // maximum number of I/O queues
	Change   func(what uint32, answer []byte)
	Stuck    bool // the controller never becomes ready
	Features uint16
	// Next decides how the next I/O command is completed; nil: every command completes correctly. Some Lies
	// need a number, which is the second result: a status, an identifier or a vector.
	Next    func() (Lie, uint16)
	Flushed int // number of flushes, and of writes with FUA

	plug virtio.Plug

	mu      sync.Mutex // guards the fields below
	regs    [0x38]byte
	queues  [17]queue
	masked  bool
	gone    bool
	vectors int
}

// queue is a submission queue and the completion queue with the same number.
type queue struct {
	submit, done         uint64
	submitSize, doneSize int
	vector               int
	head, tail           int // head: index of the next entry to process; tail: index behind the last entry, in the submission queue
	// at: index of the next entry to fill; taken: index behind the last entry that the driver has processed, in the
	// completion queue
	at, taken int
	phase     uint16
}

var le = binary.LittleEndian

// Add plugs a controller into a machine. The controller has the given number of MSI-X vectors; with 0 it uses an interrupt
// line.
func Add(m *virtio.Machine, c *Controller, vectors int) {
	c.vectors = vectors
	const entries, timeout, commandSet = 255, 2, 1 << 37
	le.PutUint64(c.regs[0:], entries|timeout<<24|commandSet)
	c.plug = m.AddFunction(virtio.Function{ID: 0x0010_1b36, Class: 0x010802, BAR: 0, Size: 0x2000, Vectors: vectors, Registers: c})
}

// Read implements the registers.
func (c *Controller) Read(at, width int) (v uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return ^uint64(0)
	}
	for i := range width {
		if at+i < len(c.regs) {
			v |= uint64(c.regs[at+i]) << (8 * i)
		}
	}
	return v
}

// Write implements the registers.
func (c *Controller) Write(at, width int, v uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.gone:
	case at >= 0x1000:
		c.doorbell((at-0x1000)/4, int(v))
	case at == 0x0c:
		c.masked = true
		c.plug.Lower()
	case at == 0x10:
		c.masked = false
		c.raiseLine()
	case at+width <= len(c.regs) && at >= 0x14:
		for i := range width {
			c.regs[at+i] = byte(v >> (8 * i))
		}
		if at == 0x14 {
			c.configure(v&1 != 0)
		}
	}
}

// configure starts or stops the controller after the driver wrote to the register CC.
func (c *Controller) configure(enable bool) {
	c.queues = [17]queue{}
	c.regs[0x1c] = 0
	if !enable || c.Stuck {
		return
	}
	sizes := le.Uint32(c.regs[0x24:])
	c.queues[0] = queue{
		submit: le.Uint64(c.regs[0x28:]), done: le.Uint64(c.regs[0x30:]),
		submitSize: int(sizes&0xfff) + 1, doneSize: int(sizes>>16&0xfff) + 1, phase: 1,
	}
	c.regs[0x1c] = 1
}

// doorbell handles a write to the doorbell of a queue's tail or head.
func (c *Controller) doorbell(number, v int) {
	q := &c.queues[number/2%len(c.queues)]
	if q.submitSize == 0 || !c.plug.Master() {
		return
	}
	if number%2 == 1 {
		q.taken = v % q.doneSize
		return
	}
	for q.tail = v % q.submitSize; q.head != q.tail && !c.gone; q.head = (q.head + 1) % q.submitSize {
		entry := append([]byte(nil), c.plug.Memory(q.submit+uint64(64*q.head), 64)...)
		if number == 0 {
			result, status := c.administer(entry)
			c.complete(q, le.Uint16(entry[2:]), status, result, true)
		} else {
			c.carryOut(q, entry)
		}
	}
}

// complete writes a completion, and interrupts if loud is set.
func (c *Controller) complete(q *queue, id, status uint16, result uint32, loud bool) {
	b := c.plug.Memory(q.done+uint64(16*q.at), 16)
	word(b, 0).Store(result)
	word(b, 12).Store(uint32(id) | uint32(status<<1|q.phase)<<16)
	if q.at++; q.at == q.doneSize {
		q.at, q.phase = 0, q.phase^1
	}
	if q != &c.queues[0] && loud {
		c.interrupt(q.vector)
	}
}

func (c *Controller) interrupt(vector int) {
	if c.vectors > 0 {
		c.plug.Raise(vector)
		return
	}
	c.raiseLine()
}

// raiseLine raises the interrupt line, even if no completion is pending: drivers must check.
func (c *Controller) raiseLine() {
	if c.vectors == 0 && !c.masked && c.anyDone() {
		c.plug.Raise(0)
	}
}

// anyDone reports whether completions are pending.
func (c *Controller) anyDone() bool {
	for i := 1; i < len(c.queues); i++ {
		if c.queues[i].at != c.queues[i].taken {
			return true
		}
	}
	return false
}
