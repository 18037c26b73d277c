package call

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"loam/abi/linux"
	"loam/internal/race"
)

// A vector is a sequence of bytes: gather reads it from any offset, and scatter fills it from its start.
func TestGatherAndScatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		m := &flatMemory{bytes: make([]byte, 4096)}
		c := Caller{Memory: m}
		var v vector
		var flat []byte
		for at, n := uint64(0), rng.IntN(7); n > 0; n-- {
			e := linux.Iovec{Base: base + at, Len: rng.Uint64N(200)}
			at += e.Len + rng.Uint64N(50)
			v = append(v, e)
			for i := range e.Len {
				b := byte(rng.Uint32())
				m.bytes[e.Base-base+i] = b
				flat = append(flat, b)
			}
		}
		if v.len() != len(flat) {
			t.Fatalf("%v has %d bytes, want %d", v, v.len(), len(flat))
		}
		off := rng.IntN(len(flat) + 1)
		room := make([]byte, rng.IntN(300))
		n, errno := c.gather(v, room, off)
		want := flat[off:min(len(flat), off+len(room))]
		if errno != 0 || n != len(want) || !bytes.Equal(room[:n], want) {
			t.Fatalf("%v from %d: %d bytes %x, %v, want %x", v, off, n, room[:n], errno, want)
		}
		fresh := make([]byte, rng.IntN(len(flat)+1))
		for i := range fresh {
			fresh[i] = byte(rng.Uint32())
		}
		if errno := c.scatter(v, fresh); errno != 0 {
			t.Fatal(errno)
		}
		all := make([]byte, len(flat))
		c.gather(v, all, 0)
		if want := slices.Concat(fresh, flat[len(fresh):]); !bytes.Equal(all, want) {
			t.Fatalf("%v after a scatter of %d bytes: %x, want %x", v, len(fresh), all, want)
		}
	}
}

// A bad buffer ends a transfer where the bytes before it have moved.
func TestBadBuffer(t *testing.T) {
	m := &flatMemory{bytes: []byte("0123456789")}
	c := Caller{Memory: m}
	v := vector{{Base: base, Len: 4}, {Base: noAddress, Len: 2}, {Base: base + 4, Len: 2}}
	room := make([]byte, 8)
	if n, errno := c.gather(v, room, 0); n != 4 || errno != linux.EFAULT || string(room[:4]) != "0123" {
		t.Errorf("%d bytes %q, %v", n, room, errno)
	}
	if errno := c.scatter(v, []byte("abcdef")); errno != linux.EFAULT || string(m.bytes) != "abcd456789" {
		t.Errorf("%q, %v", m.bytes, errno)
	}
}

// The lengths of a vector are checked one by one, and together cut off at the largest transfer of a call.
func TestVectorLengths(t *testing.T) {
	const longest = 0x7ffff000
	for _, c := range []struct {
		lengths []uint64
		want    linux.Errno
		total   int
	}{
		{nil, 0, 0},
		{[]uint64{0, 0}, 0, 0},
		{[]uint64{5, 7}, 0, 12},
		{[]uint64{longest, 1}, 0, longest},
		{[]uint64{1, longest, 5}, 0, longest},
		{[]uint64{1 << 40, 1 << 40}, 0, longest},
		{[]uint64{1 << 63}, linux.EINVAL, 0},
		{[]uint64{5, ^uint64(0)}, linux.EINVAL, 0},
		{[]uint64{1<<63 - 1}, linux.EFAULT, 0},
		{[]uint64{1<<63 - 1, 1 << 63}, linux.EINVAL, 0},
	} {
		var v vector
		for _, n := range c.lengths {
			v = append(v, linux.Iovec{Base: base, Len: n})
		}
		if errno := v.check(); errno != c.want || errno == 0 && v.len() != c.total {
			t.Errorf("%d: %v, %d bytes, want %v, %d", c.lengths, errno, v.len(), c.want, c.total)
		}
	}
	if errno := (vector{{Base: ^uint64(0) - 4, Len: 8}}).check(); errno != linux.EFAULT {
		t.Errorf("a buffer beyond the end of all addresses: %v", errno)
	}
}

// Buffers are lent with the size that was asked for, and the caller's own buffer is used for small ones.
func TestLoans(t *testing.T) {
	for _, n := range []int{0, 1, smallLoan, smallLoan + 1, largeLoan, largeLoan + 1, 1 << 20} {
		l := borrow(n)
		if len(l.b) != n {
			t.Errorf("%d bytes, want %d", len(l.b), n)
		}
		l.giveBack()
	}
	own := make([]byte, Small)
	c := Caller{Memory: &flatMemory{scratch: own}}
	if l := c.borrow(100); &l.b[0] != &own[0] || len(l.b) != 100 {
		t.Error("the caller's buffer is not used")
	}
	if l := c.borrow(Small + 1); &l.b[0] == &own[0] {
		t.Error("the caller's buffer is too small")
	}
}

// A call with up to eight buffers allocates no memory for their vector.
func TestVectorAllocates(t *testing.T) {
	c, m := newCaller(t, 4096)
	m.copies = true
	fd := must(t)(do(c, linux.SYS_MEMFD_CREATE, base, 0))
	for i := range uint64(8) {
		le.PutUint64(m.bytes[i*linux.SizeofIovec:], base+1024+i)
		le.PutUint64(m.bytes[i*linux.SizeofIovec+8:], 1)
	}
	for _, number := range []int{linux.SYS_PWRITEV, linux.SYS_PREADV} {
		row := ByNumber(number)
		n := testing.AllocsPerRun(100, func() {
			if got, errno := row.Serve(c, Args{A1: fd, A2: base, A3: 8}); got != 8 || errno != 0 {
				t.Fatal(got, errno)
			}
		})
		if n != 0 && !race.Enabled {
			t.Errorf("%s: %v allocations", row.Name, n)
		}
	}
}
