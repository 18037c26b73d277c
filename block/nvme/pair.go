package nvme

import (
	"encoding/binary"
	"errors"
	"fmt"

	"loam/driver"
)

// Lengths of entries in bytes, and the size of a page.
const (
	commandLen    = 64
	completionLen = 16
	pageSize      = 4096
)

// errNonsense: the controller completed what it was not asked for.
var errNonsense = errors.New("nvme: the controller writes completions that make no sense")

// pair is a submission queue and its completion queue (section 4.1), of the same size.
// It is used by one goroutine at a time.
//
// The controller writes completions in a circle, and inverts a phase bit each time
// round: an entry is new if its phase is the one expected. At most size-1 commands are
// in flight, so neither queue overflows.
type pair struct {
	registers          driver.Registers
	size               int
	submit, done       driver.Buffer
	tailBell, headBell int // places of the doorbells
	tail, head         int
	shown              int // tail that the controller was shown
	phase              uint32
}

// newPair allocates queue number n. Entries are zeros, so the first phase is 1.
func newPair(m driver.Machine, r driver.Registers, n, size, stride int) (*pair, error) {
	p := &pair{registers: r, size: size, phase: 1, tailBell: regDoorbells + 2*n*stride, headBell: regDoorbells + (2*n+1)*stride}
	var err error
	if p.submit, err = m.Allocate(size*commandLen, pageSize); err != nil {
		return nil, err
	}
	if p.done, err = m.Allocate(size*completionLen, pageSize); err != nil {
		m.Free(p.submit)
		return nil, err
	}
	return p, nil
}

func (p *pair) free(m driver.Machine) {
	m.Free(p.submit)
	m.Free(p.done)
}

// command holds the variable fields of a command (section 4.2).
type command struct {
	opcode     uint8
	id         uint16
	namespace  uint32
	prp1, prp2 uint64
	dwords     [3]uint32 // 10 to 12
}

// add puts a command into the queue. There is room.
func (p *pair) add(c *command) {
	b := p.submit.Bytes[p.tail*commandLen:][:commandLen]
	le := binary.LittleEndian
	clear(b)
	le.PutUint32(b, uint32(c.opcode)|uint32(c.id)<<16)
	le.PutUint32(b[4:], c.namespace)
	le.PutUint64(b[24:], c.prp1)
	le.PutUint64(b[32:], c.prp2)
	for i, v := range c.dwords {
		le.PutUint32(b[40+4*i:], v)
	}
	p.tail = (p.tail + 1) % p.size
}

// show rings the doorbell for what was added.
func (p *pair) show() {
	if p.shown != p.tail {
		p.shown = p.tail
		p.registers.Write32(p.tailBell, uint32(p.tail))
	}
}

// completion is one entry of the completion queue.
type completion struct {
	id     uint16
	status uint16 // type and code; 0: success
	result uint32
}

// take returns the next completion. The entry is the controller's again after
// release.
func (p *pair) take() (c completion, ok bool) {
	at := p.head * completionLen
	v := word(p.done.Bytes, at+12).Load() // before the rest: see the phase
	if v>>16&1 != p.phase {
		return c, false
	}
	c = completion{id: uint16(v), status: uint16(v >> 17 & statusMask), result: word(p.done.Bytes, at).Load()}
	if p.head++; p.head == p.size {
		p.head, p.phase = 0, p.phase^1
	}
	return c, true
}

// release tells the controller which completions were taken.
func (p *pair) release() { p.registers.Write32(p.headBell, uint32(p.head)) }

// nonsense is an error with details.
func nonsense(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNonsense, fmt.Sprintf(format, args...))
}
