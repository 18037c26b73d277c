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

// errNonsense is the error for an invalid completion, for example for a command that is not in flight.
var errNonsense = errors.New("nvme: the controller writes completions that make no sense")

// pair is a submission queue and its completion queue (section 4.1), of the same size. It is used
// by one goroutine at a time.
//
// The completion queue is a ring. The controller inverts the phase bit of its entries on each pass:
// an entry is new if it has the expected phase. At most size-1 commands are in flight, so neither
// queue overflows.
type pair struct {
	registers          driver.Registers
	size               int
	submit, done       driver.Buffer
	tailBell, headBell int // offsets of the doorbell registers of the submission queue (tail) and of the completion queue (head)
	tail, head         int
	shown              int // the tail that was last written to the doorbell
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
	dwords     [3]uint32 // dwords 10 to 12 of the command
}

// add writes a command into the submission queue, which must have room.
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

// show notifies the controller of the added commands: it writes the doorbell of the submission queue.
func (p *pair) show() {
	if p.shown != p.tail {
		p.shown = p.tail
		p.registers.Write32(p.tailBell, uint32(p.tail))
	}
}

// completion is one entry of the completion queue.
type completion struct {
	id     uint16
	status uint16 // status code type and status code; 0: success
	result uint32
}

// take returns the next completion. After release, the controller may reuse its entry.
func (p *pair) take() (c completion, ok bool) {
	at := p.head * completionLen
	// this word is read first, because its phase bit says whether the rest of the entry is valid
	v := word(p.done.Bytes, at+12).Load()
	if v>>16&1 != p.phase {
		return c, false
	}
	c = completion{id: uint16(v), status: uint16(v >> 17 & statusMask), result: word(p.done.Bytes, at).Load()}
	if p.head++; p.head == p.size {
		p.head, p.phase = 0, p.phase^1
	}
	return c, true
}

// release returns the entries of taken completions to the controller.
func (p *pair) release() { p.registers.Write32(p.headBell, uint32(p.head)) }

// nonsense returns errNonsense with details.
func nonsense(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNonsense, fmt.Sprintf(format, args...))
}
