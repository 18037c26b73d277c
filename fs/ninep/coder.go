package ninep

import (
	"encoding/binary"
	"math"
	"sync"
)

// Coder encodes or decodes the fields of messages, in little-endian order. Each message has one method that
// lists its fields, which serves both directions.
type Coder struct {
	b        []byte // encoding: the message so far; decoding: the part that is not decoded yet
	decoding bool
	bad      bool // the message ended early, or a field has an impossible value
}

// coders has Coder values (*Coder) for Append and Parse: a Coder that is passed to a Message is allocated.
var coders = sync.Pool{New: func() any { return new(Coder) }}

// free returns a Coder of coders.
func (c *Coder) free() {
	c.b = nil
	coders.Put(c)
}

// take returns the next n bytes of a message that is being decoded, or nil if the message ends
// before.
func (c *Coder) take(n int) []byte {
	if n > len(c.b) {
		c.bad = true
		return nil
	}
	p := c.b[:n:n]
	c.b = c.b[n:]
	return p
}

func (c *Coder) u8(v *uint8) {
	if !c.decoding {
		c.b = append(c.b, *v)
	} else if p := c.take(1); p != nil {
		*v = p[0]
	}
}

func (c *Coder) u16(v *uint16) {
	if !c.decoding {
		c.b = binary.LittleEndian.AppendUint16(c.b, *v)
	} else if p := c.take(2); p != nil {
		*v = binary.LittleEndian.Uint16(p)
	}
}

func (c *Coder) u32(v *uint32) {
	if !c.decoding {
		c.b = binary.LittleEndian.AppendUint32(c.b, *v)
	} else if p := c.take(4); p != nil {
		*v = binary.LittleEndian.Uint32(p)
	}
}

func (c *Coder) u64(v *uint64) {
	if !c.decoding {
		c.b = binary.LittleEndian.AppendUint64(c.b, *v)
	} else if p := c.take(8); p != nil {
		*v = binary.LittleEndian.Uint64(p)
	}
}

// text encodes or decodes a string, preceded by its length in 16 bits. A longer string is cut when it is encoded: callers
// check lengths.
func (c *Coder) text(s *string) {
	n := uint16(min(len(*s), math.MaxUint16))
	c.u16(&n)
	if !c.decoding {
		c.b = append(c.b, (*s)[:n]...)
	} else if p := c.take(int(n)); p != nil {
		*s = string(p)
	}
}

// texts encodes or decodes a list of strings, preceded by its length in 16 bits. A list of more strings than the
// parameter most is cut when it is encoded, and is an error when it is decoded.
func (c *Coder) texts(list *[]string, most int) {
	n := uint16(min(len(*list), most))
	c.u16(&n)
	if !c.decoding {
		for i := range n {
			c.text(&(*list)[i])
		}
		return
	}
	*list = nil
	if int(n) > most {
		c.bad = true
		return
	}
	for range n {
		var s string
		c.text(&s)
		if c.bad {
			return
		}
		*list = append(*list, s)
	}
}

// data encodes or decodes bytes, preceded by their number in 32 bits. Decoded bytes are part of the message.
func (c *Coder) data(p *[]byte) {
	n := uint32(len(*p))
	c.u32(&n)
	if !c.decoding {
		c.b = append(c.b, *p...)
	} else if n > uint32(len(c.b)) {
		c.bad = true
	} else {
		*p = c.take(int(n))
	}
}

func (c *Coder) time(t *Time) {
	c.u64(&t.Sec)
	c.u64(&t.Nsec)
}

func (c *Coder) qid(q *QID) {
	c.u8(&q.Type)
	c.u32(&q.Version)
	c.u64(&q.Path)
}
