package ahci

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"loam/block"
	"loam/block/controller"
	"loam/driver"
)

// Queued commands of a port fail together: when one fails, the disk aborts all of them. The aborted
// commands have had no effect that matters, since each can be repeated. Therefore, after the port
// has recovered, all are sent again one at a time. The command that then fails is the one that is
// reported as failed.

// C implements controller.Ring.
func (p *port) C() <-chan struct{} { return p.c }

// Call implements driver.Caller. If the machine cannot call functions, interrupts are still sent to C.
func (p *port) Call(f func()) {
	if _, ok := p.hba.interrupt.(driver.Caller); ok {
		p.called.Store(&f)
	}
}

// Acknowledge implements controller.Ring. It does nothing, because hba.distribute acknowledges
// interrupts.
func (p *port) Acknowledge() {}

// Start implements controller.Ring.
func (p *port) Start(s controller.Step, data []driver.Segment) {
	r, bit := s.Request, uint32(1)<<s.Slot
	p.queued &^= bit
	switch s.Op {
	case block.Flush:
		p.fill(s.Slot, fis{command: ataFlush, device: deviceLBA}, nil, false)
	case block.Discard:
		b, at := p.ranges(s.Slot)
		setRanges(b, uint64(r.Offset)/512, uint64(r.Length)/512)
		p.fill(s.Slot, fis{command: ataDataset, features: datasetTrim, count: 1, device: deviceLBA}, []driver.Segment{{Address: at, Size: rangesLen}}, true)
	default:
		p.fill(s.Slot, p.transfer(s, bit), data, s.Op == block.Write)
	}
	p.issued |= bit
	p.fresh |= bit
}

// transfer returns the command for a read or write.
func (p *port) transfer(s controller.Step, bit uint32) fis {
	sector := int64(p.info.LogicalSector)
	lba, n := uint64(s.Request.Offset/sector), uint16(s.Request.Bytes()/sector)
	write := s.Op == block.Write
	if !p.queues {
		c := fis{command: ataReadDMA, lba: lba, count: n, device: deviceLBA}
		if write {
			c.command = ataWriteDMA
		}
		return c
	}
	p.queued |= bit
	const tagShift = 3
	c := fis{command: ataReadQueued, lba: lba, features: n, count: uint16(s.Slot) << tagShift, device: deviceLBA}
	if write {
		c.command = ataWriteQueued
	}
	if s.FUA {
		c.device |= deviceForceUnit
	}
	return c
}

// setRanges writes the ranges of a discard: 48 bits of the first sector and 16 bits of the number
// of sectors (ACS-3 section 7.5.3.2). Empty ranges are ignored by the disk.
func setRanges(b []byte, first, n uint64) {
	const most = 0xffff
	clear(b)
	for i := 0; n > 0; i++ {
		k := min(n, most)
		binary.LittleEndian.PutUint64(b[8*i:], first|k<<48)
		first, n = first+k, n-k
	}
}

// Kick implements controller.Ring.
func (p *port) Kick() {
	if p.waiting != 0 {
		p.waiting |= p.fresh // new commands are sent after the commands that are retried one at a time
	} else {
		p.issue(p.fresh)
	}
	p.fresh = 0
}

// issue sends the commands in the given slots to the port (section 5.3.2.3).
func (p *port) issue(slots uint32) {
	p.active |= slots
	if q := slots & p.queued; q != 0 {
		p.write(portActive, q)
	}
	p.write(portIssue, slots)
}

// Take implements controller.Ring.
func (p *port) Take() (c controller.Completion, ok bool, fatal error) {
	if p.broken {
		p.broken = false
		p.blame()
	} else if p.done == 0 && !p.looked {
		if err := p.look(); err != nil {
			return c, false, err
		}
		p.looked = true // a command that completes from now on causes an interrupt
	}
	if p.done == 0 {
		p.looked = false
		return c, false, nil
	}
	c.Slot = bits.TrailingZeros32(p.done)
	bit := uint32(1) << c.Slot
	if p.failed&bit != 0 {
		c.Err = fmt.Errorf("%w: the disk reports an error", block.ErrIO)
	}
	p.done, p.failed, p.issued = p.done&^bit, p.failed&^bit, p.issued&^bit
	return c, true, nil
}

// look records the commands that the port has completed, and returns an error if the port needs
// recovery or has failed.
func (p *port) look() error {
	events := p.events.Swap(0)
	if events&eventFatal != 0 {
		return fmt.Errorf("ahci: the controller reports an error of its bus (%#x)", events)
	}
	if events&eventLink != 0 || events == 0 {
		if err := p.checkLink(); err != nil {
			return err
		}
	}
	p.broken = events&eventFailed != 0 // broken is set before the call of complete, which then issues no further command
	p.complete(p.completed())
	if p.broken {
		return controller.ErrRecover
	}
	return nil
}

// completed returns the active commands that the disk has completed. A queued command is complete when its bit in PxSACT is
// cleared, another one when its bit in PxCI is cleared (section 5.5.3).
func (p *port) completed() (slots uint32) {
	if q := p.active & p.queued; q != 0 {
		slots = q &^ p.read(portActive)
	}
	if q := p.active &^ p.queued; q != 0 {
		slots |= q &^ p.read(portIssue)
	}
	return slots
}

// checkLink returns an error if the disk was unplugged.
func (p *port) checkLink() error {
	v := p.read(portLink)
	if v == ^uint32(0) || v&linkMask != linkPresent {
		return block.ErrGone
	}
	const linkChanged = 1<<16 | 1<<26 // PxSERR.DIAG.N (PhyRdy has changed) and PxSERR.DIAG.X (a device was connected)
	p.write(portError, linkChanged)
	return nil
}

// complete records completed commands, and sends the next command that is retried alone.
func (p *port) complete(slots uint32) {
	p.active &^= slots
	p.done |= slots
	if p.waiting != 0 && p.active == 0 && !p.broken {
		next := p.waiting & -p.waiting
		p.waiting &^= next
		p.issue(next)
	}
}

// blame marks the active command as failed if there is only one. If there are several, any of them
// may have failed: blame queues them to be retried one at a time. The port has recovered, and has
// no commands.
func (p *port) blame() {
	suspects := p.active
	p.active = 0
	if bits.OnesCount32(suspects) == 1 {
		p.failed |= suspects
	} else {
		p.waiting |= suspects
		suspects = 0
	}
	p.complete(suspects)
}
