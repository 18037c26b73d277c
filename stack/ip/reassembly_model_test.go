package ip

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"loam/wire"
)

func TestRandomDatagrams(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	s := newScript(t, ReassemblyConfig{})
	for range 300 {
		s.header.ID++
		size := 9 + r.IntN(20000)
		headers, parts := cut(t, s.header, bytesOf(size), 576+r.IntN(1000))
		if len(parts) == 1 {
			continue
		}
		order := r.Perm(len(parts))
		for i, f := range order {
			d, ok := s.r.Add(s.now, &headers[f], parts[f])
			if ok != (i == len(order)-1) {
				t.Fatalf("complete after %d of %d fragments", i+1, len(order))
			}
			if ok {
				if !bytes.Equal(d.Payload.Bytes(), bytesOf(size)) {
					t.Fatal("the payload differs")
				}
				d.Payload.Free()
			}
		}
	}
}

// slow is a simple reassembly that stores each byte separately.
type slow struct {
	arrived map[int]byte
	total   int
	refused bool
}

// add returns the payload if it is complete.
func (s *slow) add(from int, p []byte, more bool) []byte {
	end := from + len(p)
	fresh := 0
	for i := range p {
		if b, ok := s.arrived[from+i]; !ok {
			fresh++
		} else if b != p[i] {
			s.refused = true
		}
	}
	beyond := false
	for at := range s.arrived {
		beyond = beyond || at >= end || s.total < 0 && at == end-1 // an earlier fragment had more set
	}
	if len(p) == 0 || fresh != 0 && fresh != len(p) || end > wire.MaxIPv4-wire.IPv4MinLen ||
		s.total >= 0 && (end > s.total || more && end == s.total || !more && end != s.total) || !more && beyond {
		s.refused = true
	}
	if s.refused {
		return nil
	}
	for i := range p {
		s.arrived[from+i] = p[i]
	}
	if !more {
		s.total = end
	}
	if len(s.arrived) != s.total {
		return nil
	}
	whole := make([]byte, s.total)
	for at, b := range s.arrived {
		whole[at] = b
	}
	return whole
}

// FuzzReassembly decodes fragments of a few datagrams from the input, four bytes each: datagram and flags,
// offset, length, and the value of the bytes.
func FuzzReassembly(f *testing.F) {
	f.Add([]byte{1, 0, 1, 0, 0, 1, 1, 0})
	f.Add([]byte{1, 1, 2, 0, 1, 0, 1, 0, 0, 3, 9, 0})
	f.Add([]byte{1, 0, 4, 0, 1, 2, 4, 7, 1, 0, 4, 0, 0, 8, 1, 0})
	f.Add([]byte{0, 255, 255, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newScript(t, ReassemblyConfig{Memory: 1 << 30, Source: 1 << 30})
		model := map[uint16]*slow{}
		for ; len(b) >= 4; b = b[4:] {
			more := b[0]&1 != 0
			s.header.ID = uint16(b[0] >> 1 & 3)
			from, length := 8*int(b[1]), 8*int(b[2]&15)
			if b[0]&0x80 != 0 {
				from += 8 * 7900 // the offset is near the largest that the field can hold
			}
			if !more {
				length = int(b[2])
			}
			payload := bytes.Repeat([]byte{b[3] & 1}, length)
			m := model[s.header.ID]
			if m == nil {
				m = &slow{arrived: map[int]byte{}, total: -1}
				model[s.header.ID] = m
			}
			var want []byte
			if from == 0 && !more {
				want = payload // a fragment that is the whole packet
			} else {
				want = m.add(from, payload, more)
			}
			a := s.r.table[Key{s.header.Src, s.header.Dst, s.header.Protocol, uint32(s.header.ID)}]
			full := a != nil && a.pieces.count == maxPieces
			d, ok := s.addBytes(from, payload, more)
			if full && s.r.counters.Scattered > 0 {
				return // the model does not limit the number of pieces of a datagram
			}
			if ok != (want != nil) {
				t.Fatalf("complete: %v, want %v", ok, want != nil)
			}
			if ok {
				if !bytes.Equal(d.Payload.Bytes(), want) {
					t.Fatal("the payload differs")
				}
				d.Payload.Free()
				if from != 0 || more {
					delete(model, s.header.ID)
				}
			}
		}
	})
}

func BenchmarkReassembly(b *testing.B) {
	var m memory
	pool := &testBuffer{memory: &m, b: make([]byte, 65536)}
	r := NewReassembler(ReassemblyConfig{Alloc: func(n int) Buffer {
		pool.freed = false
		pool.Resize(n)
		return pool
	}})
	payload := bytesOf(8000)
	b.SetBytes(int64(len(payload)))
	h := testHeader()
	for b.Loop() {
		h.ID++
		f, _ := Fragment(&h, payload, 1500)
		for h, part, ok := f.Next(); ok; h, part, ok = f.Next() {
			if d, ok := r.Add(0, &h, part); ok {
				d.Payload.Free()
			}
		}
	}
}
