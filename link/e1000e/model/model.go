// Package model contains Intel Gigabit Ethernet cards in the same process, for tests: the other side of
// loam/link/e1000e, written from the data sheet of the 82574, without code of the driver.
//
// Two cards are connected by a cable. A card does its work during the write to a register, so it has no goroutine. If a
// card has no buffer for a frame, the other card waits. A card behaves correctly unless Card.Next returns another Lie, or
// Card.Change changes what the driver reads.
package model

import (
	"encoding/binary"
	"sync"

	virtio "loam/driver/virtio/model"
)

// Lie is a way to report a received frame, correct or wrong.
type Lie uint8

// Values of Lie. Some of them use a number.
const (
	Truth    Lie = iota
	Word         // the descriptor's second word is the number
	Endless      // the frame does not end in its last descriptor
	Ahead        // the descriptor stays empty, and the next one is filled
	All          // every descriptor of the ring has the number as its second word
	Quiet        // correctly, without an interrupt
	Spurious     // correctly, with all causes of interrupts
	Vanish       // the card is unplugged
	Unsent       // correctly, but the card that sent the frame never reports that, and stops sending
	Lies         // number of ways to report a frame
)

// Kind is the kind of a card.
type Kind struct {
	ID      uint32 // PCI device ID
	Vectors int    // number of MSI-X vectors
	MSI     bool
}

// Cable connects two cards.
type Cable struct {
	mu   sync.Mutex // guards all fields of both cards
	A, B *Card
}

// Card is a network card. Its exported fields are set before a driver uses it.
type Card struct {
	MAC    [6]byte // all zeros: the card has no EEPROM
	Stuck  bool    // a reset never ends
	Next   func() (Lie, uint64)
	Change func(register int, v uint32) uint32
	Sums   int // number of checksums that the card has inserted into frames, except those of cut frames
	Cut    int // number of frames that the card has cut

	kind  Kind
	cable *Cable
	peer  *Card
	plug  virtio.Plug

	regs   [0x6000 / 4]uint32
	down   bool   // the cable is disconnected
	gone   bool   // the card is unplugged
	mute   bool   // the card sends nothing any more
	raised uint32 // causes whose interrupt was raised and that are still set and unmasked

	context, cutting context
	options          uint64 // of the first data descriptor of frame
	frame            []byte // the frame that is being sent
	whole            bool   // frame is complete
	sent             int    // payload bytes of frame that were sent
	segment          []byte
}

// context is the content of a context descriptor.
type context struct{ first, second uint64 }

// Registers that the model treats specially.
const (
	control, status, extended   = 0x0000, 0x0008, 0x0018
	cause, raise, unmask, mask  = 0x00c0, 0x00c8, 0x00d0, 0x00d8
	autoClear, autoMask, vector = 0x00dc, 0x00e0, 0x00e4
	receive, send               = 0x0100, 0x0400
	receiveRing, sendRing       = 0x2800, 0x3800
	missed                      = 0x4010
	addressLow, addressHigh     = 0x5400, 0x5404

	// Offsets from receiveRing and sendRing.
	ringLen, ringHead, ringTail = 0x08, 0x10, 0x18

	causeSent, causeLink, causeReceived    = 1 << 0, 1 << 2, 1 << 7
	causeQueueRx, causeQueueTx, causeOther = 1 << 20, 1 << 22, 1 << 24
)

var le, be = binary.LittleEndian, binary.BigEndian

// Connect connects two new cards.
func Connect(a, b *Card) *Cable {
	c := &Cable{A: a, B: b}
	a.cable, a.peer = c, b
	b.cable, b.peer = c, a
	return c
}

// Add plugs a card into a machine.
func (c *Card) Add(m *virtio.Machine, k Kind) {
	c.kind = k
	c.reset()
	c.plug = m.AddFunction(virtio.Function{
		ID: k.ID<<16 | 0x8086, Class: 0x020000, Size: 0x8000, Vectors: k.Vectors, MSI: k.MSI, Registers: c,
	})
}

func (c *Card) reg(at int) *uint32 { return &c.regs[at/4] }

// reset sets all registers to their initial values.
func (c *Card) reset() {
	clear(c.regs[:])
	if c.MAC != [6]byte{} {
		*c.reg(addressLow) = le.Uint32(c.MAC[:])
		*c.reg(addressHigh) = uint32(le.Uint16(c.MAC[4:])) | 1<<31
	}
	c.raised, c.whole, c.frame, c.sent, c.context = 0, false, c.frame[:0], 0, context{}
	if c.plug != (virtio.Plug{}) {
		c.plug.Lower()
	}
}

// SetLink connects or disconnects the cable of the card.
func (c *Card) SetLink(up bool) {
	c.cable.mu.Lock()
	defer c.cable.mu.Unlock()
	c.down = !up
	c.setCauses(causeLink)
	c.peer.sendAll()
}

// Master reports whether the card may access memory.
func (c *Card) Master() bool {
	c.cable.mu.Lock()
	defer c.cable.mu.Unlock()
	return c.plug.Master()
}

// Unplug removes the card.
func (c *Card) Unplug() {
	c.cable.mu.Lock()
	defer c.cable.mu.Unlock()
	c.gone = true
}

// Miss counts frames that the card had no room for.
func (c *Card) Miss(n uint32) {
	c.cable.mu.Lock()
	defer c.cable.mu.Unlock()
	*c.reg(missed) += n
}

// Read implements the registers.
func (c *Card) Read(at, width int) uint64 {
	c.cable.mu.Lock()
	defer c.cable.mu.Unlock()
	if c.gone || at >= 4*len(c.regs) || width != 4 {
		return 1<<(8*width) - 1
	}
	v := *c.reg(at)
	switch at {
	case status:
		v = 0x80000 // GIO master
		if *c.reg(control)&4 != 0 {
			v = 0
		}
		if !c.down {
			v |= 2
		}
	case cause:
		*c.reg(cause) = 0
		c.interrupt()
	case missed:
		*c.reg(missed) = 0
	}
	if c.Change != nil {
		v = c.Change(at, v)
	}
	return uint64(v)
}

// Write implements the registers.
func (c *Card) Write(at, width int, value uint64) {
	c.cable.mu.Lock()
	defer c.cable.mu.Unlock()
	if c.gone || at >= 4*len(c.regs) || width != 4 {
		return
	}
	v := uint32(value)
	switch at {
	case control:
		const reset = 1 << 26
		if v&reset != 0 && !c.Stuck {
			c.reset()
			v &^= reset
		}
		*c.reg(control) = v
	case cause:
		*c.reg(cause) &^= v
		if v&causeOther != 0 {
			*c.reg(cause) &^= causeLink
		}
		c.interrupt()
	case raise:
		c.setCauses(v)
	case unmask:
		*c.reg(unmask) |= v
		c.interrupt()
	case mask:
		*c.reg(unmask) &^= v
		c.interrupt()
	default:
		*c.reg(at) = v
		c.sendAll()
		c.peer.sendAll()
	}
}

func (c *Card) setCauses(v uint32) {
	*c.reg(cause) |= v
	c.interrupt()
}

// interrupt raises the interrupts for causes that are set and unmasked and were not before.
func (c *Card) interrupt() {
	if c.kind.Vectors > 0 && *c.reg(cause)&causeLink != 0 {
		*c.reg(cause) |= causeOther
	}
	pending := *c.reg(cause) & *c.reg(unmask)
	fresh := pending &^ c.raised
	c.raised = pending
	switch {
	case c.kind.Vectors > 0:
		for i, bit := range []uint32{causeQueueRx, causeQueueTx, causeOther} {
			if fresh&bit != 0 {
				c.message(bit, *c.reg(vector)>>(8*i)&15)
			}
		}
	case pending == 0:
		c.plug.Lower()
	case fresh != 0 || !c.kind.MSI:
		c.plug.RaiseMSI()
	}
}

// message sends the message of a cause with MSI-X.
func (c *Card) message(bit, entry uint32) {
	const valid = 8
	if entry&valid != 0 {
		c.plug.Raise(int(entry &^ valid))
	}
	if bit&*c.reg(autoClear) != 0 {
		*c.reg(cause) &^= bit
	}
	const masks = 1 << 24 // EIAME
	if *c.reg(extended)&masks != 0 {
		*c.reg(unmask) &^= bit & *c.reg(autoMask)
	}
	c.raised = *c.reg(cause) & *c.reg(unmask)
}

// descriptor returns the memory of descriptor i of a ring. It panics if the ring is not in memory of the driver.
func (c *Card) descriptor(ring int, i uint32) []byte {
	base := uint64(*c.reg(ring)) | uint64(*c.reg(ring + 4))<<32
	return c.plug.Memory(base+uint64(16*i), 16)
}

// advance returns the index after i.
func (c *Card) advance(ring int, i uint32) uint32 { return (i + 1) % (*c.reg(ring + ringLen) / 16) }
