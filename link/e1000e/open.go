package e1000e

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"loam/driver"
	"loam/driver/pci"
	"loam/link"
	"loam/wire"
)

// Vendor is the PCI vendor ID of Intel.
const Vendor = 0x8086

// Device IDs of the supported cards.
const (
	id82540EM = 0x100e
	id82545EM = 0x100f
	id82574L  = 0x10d3
	id82574LA = 0x10f6
)

// emulatedSubsystem is the subsystem ID of QEMU's e1000e. Cards have others.
const emulatedSubsystem = 0

// Supports reports whether the driver supports a PCI function.
func Supports(f *pci.Function) bool {
	if f.Vendor != Vendor {
		return false
	}
	switch f.Device {
	case id82540EM, id82545EM, id82574L, id82574LA:
		return true
	}
	return false
}

// Time limits of the driver.
const (
	pollTick   = 100 * time.Microsecond
	resetDelay = time.Millisecond       // time after the start of a reset before the first access (section 10.2.2.1)
	resetBound = 100 * time.Millisecond // longest time for each step of a reset
)

// Config describes how to open a card. The zero value is valid.
type Config struct {
	Name  string   // name of the device; default "eth0"
	Depth int      // descriptors of each ring; default 256, a power of two from 64 to 4096
	MTU   int      // default 1500, at most 9000
	MAC   wire.MAC // address if the card does not report one; default random
	// Promiscuous makes the card receive unicast frames for any address.
	Promiscuous bool
	// NoOffloads makes the device complete no checksums of sent frames, and cut no frames.
	NoOffloads bool
	// Segment lets QEMU's e1000e cut TCP frames into segments. The zero value is right for versions before 8.0: they
	// send a frame as IP fragments, and cut IPv6 frames incorrectly, unless the other end of the cable is a TAP
	// interface. All other cards always cut frames; the 82540EM and 82545EM cut only frames of IPv4.
	Segment bool
	Log     *slog.Logger // receives messages for an operator; default none
}

// MaxMTU is the largest MTU of the 82574 (section 1.5: frames of up to 9018 bytes).
const MaxMTU = 9000

func (c *Config) setDefaults() error {
	if c.Name == "" {
		c.Name = "eth0"
	}
	if c.Depth == 0 {
		c.Depth = 256
	}
	if c.MTU == 0 {
		c.MTU = 1500
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	const minMTU, minDepth, maxDepth = 68, 64, 4096
	switch {
	case c.Depth < minDepth || c.Depth > maxDepth || c.Depth&(c.Depth-1) != 0:
		return fmt.Errorf("e1000e: depth %d is not a power of two from %d to %d", c.Depth, minDepth, maxDepth)
	case c.MTU < minMTU || c.MTU > MaxMTU:
		return fmt.Errorf("e1000e: MTU %d is not from %d to %d", c.MTU, minMTU, MaxMTU)
	}
	return nil
}

// Open resets a card and starts it.
func Open(m driver.Machine, f *pci.Function, c Config) (*Device, error) {
	if !Supports(f) {
		return nil, fmt.Errorf("%v: %w", f, ErrUnknown)
	}
	if err := c.setDefaults(); err != nil {
		return nil, err
	}
	d := &Device{
		machine: m, f: f, log: c.Log, done: make(chan struct{}), old: f.Device == id82540EM || f.Device == id82545EM,
		info: link.Info{Name: c.Name, Medium: link.Ethernet, MAC: c.MAC, MTU: c.MTU},
	}
	d.queue = &queue{device: d}
	d.queues = []link.Queue{d.queue}
	if !c.NoOffloads {
		d.info.Offloads = link.OffloadChecksum
		if c.Segment || d.old || f.Subsystem != emulatedSubsystem {
			d.info.Offloads |= link.OffloadTSO4
		}
		if d.info.Offloads.Has(link.OffloadTSO4) && !d.old { // QEMU's e1000 writes wrong lengths into IPv6 headers
			d.info.Offloads |= link.OffloadTSO6
		}
	}
	if err := d.start(&c); err != nil {
		d.turnOff()
		d.free()
		return nil, fmt.Errorf("%v: %w", f, err)
	}
	if d.messages != nil {
		d.crew.Start(d.queue.sender.loop)
	}
	d.crew.Start(d.loop)
	d.crew.Start(d.watch)
	return d, nil
}

// start prepares the card until it receives and sends.
func (d *Device) start(c *Config) (err error) {
	d.f.Enable()
	if d.registers, err = d.f.Registers(0, 0, registersLen); err != nil {
		return err
	}
	if err := d.reset(); err != nil {
		return err
	}
	d.findMAC()
	if err := errors.Join(d.queue.receiver.setUp(d.queue, c.Depth), d.queue.sender.setUp(d.queue, c.Depth)); err != nil {
		return err
	}
	if err := d.connect(); err != nil {
		return err
	}
	d.configure(c)
	d.up.Store(d.registers.Read32(regStatus)&statusLinkUp != 0)
	return nil
}

// wait waits until the bits mask of a register have the value want, at most for resetBound.
func (d *Device) wait(register int, mask, want uint32) error {
	for start := time.Now(); ; time.Sleep(pollTick) {
		switch v := d.registers.Read32(register); {
		case v == gone:
			return ErrGone
		case v&mask == want:
			return nil
		case time.Since(start) > resetBound:
			return fmt.Errorf("%w (register %#x is %#x)", ErrReset, register, v)
		}
	}
}

// reset stops the card and resets it (section 4.6.1). The interrupts are masked before and after.
func (d *Device) reset() error {
	r := d.registers
	r.Write32(regMask, ^uint32(0))
	r.Write32(regReceive, 0)
	r.Write32(regSend, sendPad)
	control := r.Read32(regControl)
	if control == gone {
		return ErrGone
	}
	if !d.old {
		r.Write32(regControl, control|controlMasterDisable)
		// An error does not matter: a reset during an access is allowed, but may lock up the bus of some chipsets.
		d.wait(regStatus, statusMaster, 0)
	}
	r.Write32(regControl, control&^controlMasterDisable|controlReset)
	time.Sleep(resetDelay)
	if err := d.wait(regControl, controlReset, 0); err != nil {
		return err
	}
	r.Write32(regMask, ^uint32(0))
	r.Write32(regCause, ^uint32(0))
	return nil
}

// findMAC reads the address that the card has loaded from its EEPROM. If the card has none, it gets the configured
// address, or a random one.
func (d *Device) findMAC() {
	// The reset has started to load the EEPROM. A card without one never sets the bit.
	if d.wait(regAddressHigh, addressValid, addressValid) == nil {
		low, high := d.registers.Read32(regAddressLow), d.registers.Read32(regAddressHigh)
		mac := wire.MAC{byte(low), byte(low >> 8), byte(low >> 16), byte(low >> 24), byte(high), byte(high >> 8)}
		if !mac.IsZero() && mac[0]&1 == 0 {
			d.info.MAC = mac
			return
		}
	}
	if d.info.MAC.IsZero() {
		rand.Read(d.info.MAC[:])
		d.info.MAC[0] = d.info.MAC[0]&^1 | 2 // locally administered, unicast
	}
	m := d.info.MAC
	d.registers.Write32(regAddressLow, uint32(m[0])|uint32(m[1])<<8|uint32(m[2])<<16|uint32(m[3])<<24)
	d.registers.Write32(regAddressHigh, uint32(m[4])|uint32(m[5])<<8|addressValid)
}

// configure writes the registers of a card that has been reset, and starts it.
func (d *Device) configure(c *Config) {
	r := d.registers
	r.Write32(regControl, r.Read32(regControl)|controlLinkUp|controlSpeed)
	const multicastRegisters = 128
	for i := range multicastRegisters {
		r.Write32(regMulticast+4*i, 0)
	}
	if !d.old {
		r.Write32(regFilter, filterISCSI|filterNFSWrite|filterNFSRead|filterAck)
		r.Write32(regArbitration, r.Read32(regArbitration)|arbitrationEnable)
	}
	r.Write32(regSums, sumsIP|sumsTransport)
	r.Write32(regReceiveDelay, 0)
	r.Write32(regReceiveBatch, batchGranularity|batchWriteBack1)
	r.Write32(regSendDelay, 0)
	batch := uint32(batchGranularity | batchWriteBack1)
	if !d.old {
		batch |= batchCount
	}
	r.Write32(regSendBatch, batch)
	r.Write32(regGap, gapRecommended)
	d.queue.receiver.place()
	d.queue.sender.place()
	r.Write32(regSend, sendEnable|sendPad|sendCollisions|sendDistance)
	receive := uint32(receiveEnable | receiveMulticast | receiveBroadcast | receiveBuffer2048 | receiveStripSum)
	if d.info.MaxLen() > longestUntagged {
		receive |= receiveLong
	}
	if c.Promiscuous {
		receive |= receiveUnicast
	}
	r.Write32(regReceive, receive)
	d.queue.receiver.release()
	r.Write32(regUnmask, d.causes.other)
}
