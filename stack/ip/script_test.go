package ip

import (
	"bytes"
	"testing"
	"time"

	"loam/wire"
)

// memory allocates buffers and counts them.
type memory struct {
	outstanding int
	refuse      bool
}

type testBuffer struct {
	memory *memory
	b      []byte
	freed  bool
}

func (b *testBuffer) Bytes() []byte { return b.b }
func (b *testBuffer) Resize(n int)  { b.b = b.b[:n] }
func (b *testBuffer) Cap() int      { return cap(b.b) }
func (b *testBuffer) Free() {
	if b.freed {
		panic("freed twice")
	}
	b.freed = true
	b.memory.outstanding--
}

func (m *memory) alloc(n int) Buffer {
	if m.refuse {
		return nil
	}
	m.outstanding++
	return &testBuffer{memory: m, b: bytes.Repeat([]byte{0xdb}, n)}
}

// script drives a Reassembler by hand. All fragments belong to the datagram in header unless a test changes
// it.
type script struct {
	t      *testing.T
	r      *Reassembler
	memory memory
	now    time.Duration
	header wire.IPv4
}

func newScript(t *testing.T, cfg ReassemblyConfig) *script {
	s := &script{t: t, now: time.Hour, header: testHeader()}
	cfg.Alloc = s.memory.alloc
	s.r = NewReassembler(cfg)
	t.Cleanup(func() {
		s.now += 24 * time.Hour
		for d := range s.r.Expire(s.now) {
			d.Payload.Free()
		}
		if s.r.Cost() != 0 || len(s.r.table) != 0 || len(s.r.sources) != 0 || s.r.Deadline() != Never {
			t.Errorf("when all time is over, %d bytes are held, for %d datagrams", s.r.Cost(), len(s.r.table))
		}
		if s.memory.outstanding != 0 {
			t.Errorf("%d buffers were not freed", s.memory.outstanding)
		}
	})
	return s
}

// add sends the bytes [from, to) of the datagram whose payload is bytesOf. The parameter
// more sets the flag "more fragments".
func (s *script) add(from, to int, more bool) (Datagram, bool) {
	return s.addBytes(from, bytesOf(to)[from:], more)
}

func (s *script) addBytes(from int, payload []byte, more bool) (Datagram, bool) {
	h := s.header
	h.FragOffset, h.MoreFragment, h.PayloadLen = from, more, len(payload)
	return s.r.Add(s.now, &h, payload)
}

func (s *script) wantNone(sentence string, from, to int, more bool) {
	s.t.Helper()
	if _, ok := s.add(from, to, more); ok {
		s.t.Fatalf("%s: the datagram is complete", sentence)
	}
}

func (s *script) wantWhole(sentence string, from, to int, more bool, total int) wire.IPv4 {
	s.t.Helper()
	d, ok := s.add(from, to, more)
	if !ok {
		s.t.Fatalf("%s: the datagram is not complete", sentence)
	}
	if !bytes.Equal(d.Payload.Bytes(), bytesOf(total)) {
		s.t.Fatalf("%s: the payload of %d bytes differs, or is not %d", sentence, len(d.Payload.Bytes()), total)
	}
	if d.Header.IsFragment() || d.Header.PayloadLen != total || d.Header.Src != s.header.Src || d.Header.ID != s.header.ID {
		s.t.Fatalf("%s: the header is %+v", sentence, d.Header)
	}
	d.Payload.Free()
	return d.Header
}

func (s *script) wantCounters(want ReassemblyCounters) {
	s.t.Helper()
	want.Fragments = s.r.counters.Fragments
	if got := s.r.Counters(); got != want {
		s.t.Errorf("counters %+v, want %+v", got, want)
	}
}
