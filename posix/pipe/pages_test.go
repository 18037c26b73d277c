package pipe

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// simple is a model of pages: a list of pages, each with its own memory.
type simple struct {
	capacity int
	pages    []*simplePage
}

type simplePage struct {
	text   []byte
	room   int // number of bytes that a write can append
	packet bool
}

func (s *simple) write(b []byte, packet bool) int {
	done := len(b) % pageSize
	if n := len(s.pages); n > 0 && s.pages[n-1].room >= done && !s.pages[n-1].packet {
		last := s.pages[n-1]
		last.text = append(last.text, b[:done]...)
		last.room -= done
	} else {
		done = 0
	}
	for done < len(b) && len(s.pages) < s.capacity {
		text := b[done:min(len(b), done+pageSize)]
		s.pages = append(s.pages, &simplePage{text: bytes.Clone(text), room: pageSize - len(text), packet: packet})
		done += len(text)
	}
	return done
}

func (s *simple) read(n int) (got []byte) {
	for n > len(got) && len(s.pages) > 0 {
		first := s.pages[0]
		part := min(n-len(got), len(first.text))
		got = append(got, first.text[:part]...)
		first.text = first.text[part:]
		if len(first.text) == 0 || first.packet {
			s.pages = s.pages[1:]
		}
		if first.packet {
			break
		}
	}
	return got
}

// Random writes, reads and changes of the capacity have the same results in pages and in the model.
func TestPagesRandomly(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	p, model := &pages{capacity: 4}, &simple{capacity: 4}
	serial := byte(0)
	for step := range 20000 {
		size := []int{1 + r.IntN(40), pageSize - 2 + r.IntN(5), 1 + r.IntN(3*pageSize)}[r.IntN(3)]
		switch r.IntN(5) {
		case 0, 1:
			b := make([]byte, size)
			for i := range b {
				serial++
				b[i] = serial
			}
			packet := r.IntN(4) == 0
			if got, want := p.write(b, packet), model.write(b, packet); got != want {
				t.Fatalf("seed %d, step %d: %d bytes of %d written, want %d", seed, step, got, size, want)
			}
		case 2, 3:
			b := make([]byte, size)
			if got, want := b[:p.read(b)], model.read(size); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, step %d: a read returned %d other bytes, want %d", seed, step, len(got), len(want))
			}
		default:
			if n := 1 << r.IntN(5); n >= p.used {
				p.resize(n)
				model.capacity = n
			}
		}
		held := 0
		for _, page := range model.pages {
			held += len(page.text)
		}
		if p.held != held || p.used != len(model.pages) {
			t.Fatalf("seed %d, step %d: %d bytes in %d pages, want %d in %d", seed, step, p.held, p.used, held, len(model.pages))
		}
	}
}

// front returns contiguous data as one slice.
func TestFront(t *testing.T) {
	p := pages{capacity: 4}
	text := make([]byte, 4*pageSize)
	for i := range text {
		text[i] = byte(i / 31)
	}
	p.write(text, false)
	if got := p.front(len(text)); !bytes.Equal(got, text) {
		t.Errorf("%d bytes of four full pages", len(got))
	}
	p.consume(pageSize + 10)
	if got := p.front(100); !bytes.Equal(got, text[pageSize+10:pageSize+110]) {
		t.Error("other bytes after consume")
	}
	p.write(text[:pageSize], false)
	if got := p.front(len(text)); !bytes.Equal(got, text[pageSize+10:]) {
		t.Errorf("%d bytes until the end of the memory", len(got))
	}
	p.consume(3*pageSize - 10)
	p.write([]byte("x"), false)
	p.write(text[:pageSize], false)
	if got := p.front(len(text)); !bytes.Equal(got, append(bytes.Clone(text[:pageSize]), 'x')) {
		t.Errorf("%d bytes until a page that is not full", len(got))
	}
}
