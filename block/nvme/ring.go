package nvme

import (
	"encoding/binary"
	"fmt"

	"loam/block"
	"loam/block/controller"
	"loam/driver"
)

// ring is an I/O queue of the controller. It implements controller.Ring. The identifier of a command is the number of its
// slot.
type ring struct {
	disk      *disk
	pair      *pair
	list      driver.Buffer // listLen bytes for each slot: a PRP list, or the range of a discard
	interrupt driver.Interrupt
	taken     bool // completions were taken from the queue and not yet released to the controller
}

// C implements controller.Ring.
func (r *ring) C() <-chan struct{} { return r.interrupt.C() }

// Call implements driver.Caller. Interrupts of a line are still sent to C.
func (r *ring) Call(f func()) {
	if i, ok := r.interrupt.(driver.Caller); ok {
		i.Call(f)
	}
}

// Acknowledge implements controller.Ring. An interrupt line is masked until all completions are
// taken (section 7.5.1.1).
func (r *ring) Acknowledge() {
	if r.disk.messages == nil {
		r.disk.registers.Write32(regMask, 1)
		r.interrupt.Done()
	}
}

// Start implements controller.Ring.
func (r *ring) Start(s controller.Step, data []driver.Segment) {
	c := command{id: uint16(s.Slot), namespace: r.disk.namespace}
	list := driver.Buffer{Bytes: r.list.Bytes[s.Slot*listLen:][:listLen], Address: r.list.Address + uint64(s.Slot*listLen)}
	switch s.Op {
	case block.Flush:
		c.opcode = opFlush
	case block.Read:
		c.opcode = opRead
	case block.Write:
		c.opcode = opWrite
	case block.WriteZeroes:
		c.opcode = opWriteZeroes
	case block.Discard:
		c.opcode = opDataset
	}
	switch s.Op {
	case block.Read, block.Write, block.WriteZeroes:
		c.prp1, c.prp2 = prps(data, list)
		c.dwords = r.blocks(s)
	case block.Discard:
		r.setRange(list.Bytes, s.Request)
		c.prp1 = list.Address
		c.dwords = [3]uint32{0, attribute}
	}
	r.pair.add(&c)
}

// blocks returns dwords 10 to 12 of a command on a range: its first block, and the number of blocks
// minus 1.
func (r *ring) blocks(s controller.Step) [3]uint32 {
	sector := int64(r.disk.info.LogicalSector)
	first, n := uint64(s.Request.Offset/sector), uint32(s.Request.Bytes()/sector)
	flags := n - 1
	if s.FUA {
		flags |= forceUnit
	}
	if s.Op == block.WriteZeroes && s.Request.Flags&block.KeepAllocated == 0 {
		flags |= deallocate
	}
	return [3]uint32{uint32(first), uint32(first >> 32), flags}
}

// setRange writes the single range of a Dataset Management command (section 6.7).
func (r *ring) setRange(b []byte, q *block.Request) {
	sector := int64(r.disk.info.LogicalSector)
	le := binary.LittleEndian
	le.PutUint32(b, 0)
	le.PutUint32(b[4:], uint32(q.Length/sector))
	le.PutUint64(b[8:], uint64(q.Offset/sector))
}

// Kick implements controller.Ring.
func (r *ring) Kick() { r.pair.show() }

// Take implements controller.Ring.
func (r *ring) Take() (c controller.Completion, ok bool, fatal error) {
	done, ok := r.pair.take()
	if ok {
		r.taken = true
		return controller.Completion{Slot: int(done.id), Err: statusError(done.status)}, true, nil
	}
	if r.taken {
		r.taken = false
		r.pair.release()
	} else if err := r.check(); err != nil {
		return c, false, err
	}
	if r.disk.messages == nil {
		r.disk.registers.Write32(regUnmask, 1)
	}
	return c, false, nil
}

// check returns an error if the controller has failed. It is called when nothing was completed
// after an interrupt or after the timeout of a request.
func (r *ring) check() error {
	switch s := r.disk.registers.Read32(regStatus); {
	case s == ^uint32(0):
		return block.ErrGone
	case s&statusFatal != 0:
		return fmt.Errorf("nvme: the controller reports a fatal error (status %#x)", s)
	}
	return nil
}

// statusError converts the status of a completion to an error.
func statusError(status uint16) error {
	switch status {
	case 0:
		return nil
	case statusInvalidCode:
		return block.ErrUnsupported
	case statusCapacity:
		return block.ErrNoSpace
	case statusReadOnly, statusProtected:
		return block.ErrReadOnly
	}
	return fmt.Errorf("%w: status %#x", block.ErrIO, status)
}
