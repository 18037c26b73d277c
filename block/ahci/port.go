package ahci

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"loam/block"
	"loam/block/controller"
	"loam/driver"
)

// errEmpty is the error of a port without a device.
var errEmpty = errors.New("ahci: nothing is there")

// port is a port with a disk. It implements controller.Ring: it is the disk's only queue.
type port struct {
	hba     *hba
	number  int
	info    block.Info
	size    int64
	queues  bool          // the disk has native command queuing
	memory  driver.Buffer // command list, received FIS and command tables: see tablesAt
	stopped error         // why the port could not spin up its disk; nil: it could
	stuck   bool          // the port did not stop, and may still use the memory that the driver gave it

	c      chan struct{}          // returned by C (see controller.Ring); wake sends to c without blocking
	called atomic.Pointer[func()] // called by wake instead; nil: there is no such function
	events atomic.Uint32          // interrupt reasons (bits of PxIS) that Take has not processed

	// The states of commands. Bit i is the command in slot i.
	issued  uint32 // started by Start, and not yet returned by Take
	active  uint32 // issued commands that were sent to the port
	queued  uint32 // slots of issued commands that use native queuing, one bit each
	fresh   uint32 // issued commands that were not yet sent to the port
	waiting uint32 // bit mask of slots: their commands are sent again one at a time, because a command failed
	done    uint32 // slots of commands that have completed and that Take has not yet returned, one bit each
	failed  uint32 // slots in the field done whose commands failed
	broken  bool   // a command has failed, and the port needs recovery
	looked  bool   // Take has looked at the port since it last returned no command
}

func (p *port) at(register int) int           { return portsAt + p.number*portLen + register }
func (p *port) read(register int) uint32      { return p.hba.registers.Read32(p.at(register)) }
func (p *port) write(register int, v uint32)  { p.hba.registers.Write32(p.at(register), v) }
func (p *port) set(register int, bits uint32) { p.write(register, p.read(register)|bits) }

// wait waits until the masked bits of a register have the wanted value.
func (p *port) wait(register int, mask, want uint32, bound time.Duration) error {
	for start := time.Now(); ; time.Sleep(pollTick) {
		v := p.read(register)
		switch {
		case v == ^uint32(0):
			return block.ErrGone
		case v&mask == want:
			return nil
		case time.Since(start) > bound:
			return fmt.Errorf("%w (register %#x is %#x)", ErrReset, register, v)
		}
	}
}

// spinUp stops the port, and makes its disk spin up.
func (p *port) spinUp() error {
	if err := p.halt(); err != nil {
		return err
	}
	p.set(portCommand, commandSpinUp|commandPower)
	return nil
}

// open starts the port, identifies its disk, and returns the disk as an open device.
func (p *port) open() (*controller.Device, error) {
	if p.stopped != nil {
		return nil, p.stopped
	}
	if p.wait(portLink, linkMask, linkPresent, linkBound-time.Since(p.hba.spunUp)) != nil {
		return nil, errEmpty
	}
	var err error
	if p.memory, err = p.hba.machine.Allocate(tablesAt+p.hba.slots*(tableLen+rangesLen), 4096); err != nil {
		return nil, err
	}
	p.hba.enter(p)
	if err = p.start(); err == nil {
		err = p.identify()
	}
	if err != nil {
		p.stop()
		p.free()
		return nil, err
	}
	p.write(portStatus, ^uint32(0))
	p.hba.registers.Write32(regStatus, 1<<p.number)
	p.write(portEnable, eventsWanted)
	alone := [block.Ops]bool{block.Flush: true, block.Discard: true}
	return controller.Open(controller.Config{
		Machine: p.hba.machine, Info: p.info, Size: p.size, Rings: []controller.Ring{p}, Slots: p.info.Depth,
		Rules:    controller.Rules{FUA: p.info.FUA, Flush: p.info.Volatile, Alone: alone},
		Segments: mostRegions, Fits: fits, Stop: p.stop, Free: p.free,
	}), nil
}

// fits reports whether the hardware can use the pieces as regions: addresses and lengths must be
// even.
func fits(pieces []driver.Segment) bool {
	for _, p := range pieces {
		if p.Address&1 != 0 || p.Size&1 != 0 || p.Size > mostRegion {
			return false
		}
	}
	return true
}

// halt makes the port stop processing commands and receiving FISes (section 10.1.2).
func (p *port) halt() error {
	p.write(portEnable, 0)
	p.write(portCommand, p.read(portCommand)&^commandStart)
	if err := p.wait(portCommand, commandRuns, 0, stopBound); err != nil {
		return err
	}
	p.write(portCommand, p.read(portCommand)&^commandReceive)
	return p.wait(portCommand, commandReceives, 0, stopBound)
}

// start sets the addresses of the port's memory, and makes the port process commands (section
// 10.3.1).
func (p *port) start() error {
	p.setAddress(portList, p.memory.Address)
	p.setAddress(portReceived, p.memory.Address+receivedAt)
	p.write(portError, ^uint32(0))
	p.write(portStatus, ^uint32(0))
	p.set(portCommand, commandReceive)
	if err := p.wait(portTask, taskBusy, 0, readyBound); err != nil {
		return err
	}
	if s := p.read(portSignature); s != signatureDisk {
		return fmt.Errorf("%w: signature %#x", ErrNotDisk, s)
	}
	p.set(portCommand, commandStart)
	return nil
}

func (p *port) setAddress(register int, at uint64) {
	p.write(register, uint32(at))
	p.write(register+4, uint32(at>>32))
}

// identify sends IDENTIFY DEVICE. The answer is written to the discard ranges of slot 0, which are
// not in use yet.
func (p *port) identify() error {
	ranges, at := p.ranges(0)
	p.fill(0, fis{command: ataIdentify}, []driver.Segment{{Address: at, Size: 512}}, false)
	p.write(portIssue, 1)
	for start := time.Now(); p.read(portIssue)&1 != 0; time.Sleep(pollTick) {
		if p.read(portStatus)&(eventFailed|eventFatal) != 0 {
			return fmt.Errorf("%w: it does not answer IDENTIFY DEVICE (status %#x)", ErrNotDisk, p.read(portTask))
		}
		if time.Since(start) > readyBound {
			return block.ErrTimeout
		}
	}
	p.queues = p.hba.queued
	d, err := parseIdentity(ranges)
	if err == nil {
		p.describe(d)
	}
	return err
}

// stop stops the port at the end of its use. After an error, the port's memory is not freed, because the port may still use
// it.
func (p *port) stop() error {
	p.hba.forget(p)
	if err := p.halt(); err != nil && !errors.Is(err, block.ErrGone) {
		p.stuck = true
		p.hba.leave()
		return fmt.Errorf("%s: %w", p.info.Name, err)
	}
	return nil
}

// free frees the port's memory. A port that is stuck has already left the controller.
func (p *port) free() {
	if !p.stuck {
		p.hba.machine.Free(p.memory)
		p.hba.leave()
	}
}

// record clears the port's interrupt reasons (PxIS), and keeps them for Take.
func (p *port) record() {
	v := p.read(portStatus)
	p.write(portStatus, v)
	p.events.Or(v)
}

// wake calls the function of Call, or wakes the loop of the port's queue.
func (p *port) wake() {
	if f := p.called.Load(); f != nil {
		(*f)()
		return
	}
	select {
	case p.c <- struct{}{}:
	default:
	}
}

// Recover implements controller.Recoverer. It stops the port after a failed command, resets the
// link, which ends the disk's error state (section 6.2.2), and starts the port again.
func (p *port) Recover() error {
	p.write(portCommand, p.read(portCommand)&^commandStart)
	if err := p.wait(portCommand, commandRuns, 0, stopBound); err != nil {
		return err
	}
	// value of PxSCTL.DET that resets the link, and the least time for which the value is kept (section 10.4.2)
	const reset, resetTime = 1, time.Millisecond
	control := p.read(portControl) &^ linkMask
	p.write(portControl, control|reset)
	time.Sleep(resetTime)
	p.write(portControl, control)
	if err := p.wait(portLink, linkMask, linkPresent, linkBound); err != nil {
		return fmt.Errorf("%w: %w", block.ErrGone, err)
	}
	p.write(portError, ^uint32(0))
	p.write(portStatus, ^uint32(0))
	p.events.Store(0)
	if err := p.wait(portTask, taskBusy, 0, readyBound); err != nil {
		return err
	}
	p.set(portCommand, commandStart)
	return nil
}

// ranges returns the memory for the discard ranges of a slot, and its address for the device.
func (p *port) ranges(slot int) ([]byte, uint64) {
	at := tablesAt + p.hba.slots*tableLen + slot*rangesLen
	return p.memory.Bytes[at:][:rangesLen], p.memory.Address + uint64(at)
}

// fis holds the variable fields of a command (register FIS, host to device: section 4.2.3 and
// Serial ATA 3.1 section 10.5.5).
type fis struct {
	command  uint8
	features uint16
	lba      uint64
	count    uint16
	device   uint8
}

// fill writes the header and the table of a command.
func (p *port) fill(slot int, c fis, data []driver.Segment, toDevice bool) {
	le := binary.LittleEndian
	at := tablesAt + slot*tableLen
	table := p.memory.Bytes[at:][:tableLen]
	const register, isCommand, words = 0x27, 0x80, 5
	copy(table, []byte{
		register, isCommand, c.command, byte(c.features), byte(c.lba), byte(c.lba >> 8), byte(c.lba >> 16), c.device,
		byte(c.lba >> 24), byte(c.lba >> 32), byte(c.lba >> 40), byte(c.features >> 8), byte(c.count), byte(c.count >> 8), 0, 0, 0, 0, 0, 0,
	})
	for i, s := range data {
		b := table[regionsAt+i*regionLen:]
		le.PutUint64(b, s.Address)
		le.PutUint32(b[8:], 0)
		le.PutUint32(b[12:], uint32(s.Size-1))
	}
	header := p.memory.Bytes[slot*headerLen:]
	flags := uint32(words) | uint32(len(data))<<16
	if toDevice {
		flags |= 1 << 6
	}
	le.PutUint32(header, flags)
	le.PutUint32(header[4:], 0)
	le.PutUint64(header[8:], p.memory.Address+uint64(at))
}
