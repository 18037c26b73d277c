package ext4_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/ext4"
)

// TestOneFile changes one file with all operations, and compares it with a slice of bytes (as fsx
// does).
func TestOneFile(t *testing.T) {
	for _, args := range []string{"-b 1024", "-b 4096", "-b 4096 -O ^metadata_csum,^has_journal"} {
		t.Run(args, func(t *testing.T) { oneFile(t, args, 4000) })
	}
}

func oneFile(t *testing.T, args string, steps int) {
	d := loadImage(t, makeImage(t, "32M", strings.Fields(args)...))
	s := mount(t, d, ext4.Config{CacheBytes: 1 << 20, Interval: time.Hour})
	v := newView(s)
	size := s.Usage().BlockSize
	f, err := v.Open(v.Dir, "f", fs.ReadWrite|fs.Create, 0o644)
	must(t, err)
	m := &model{rnd: rand.New(rand.NewPCG(1, 2)), block: int(size)}
	for step := range steps {
		call, do, want := m.change(f)
		if err := do(); !errors.Is(err, want) {
			t.Fatalf("step %d: %s: %v, want %v", step, call, err, want)
		}
		if step%50 == 0 {
			must(t, f.Sync())
		}
		if step%10 == 0 || step < 100 {
			if got := content(t, v, "f"); !bytes.Equal(got, m.b) {
				t.Fatalf("step %d: %s: the content differs: %d bytes, want %d", step, call, len(got), len(m.b))
			}
		}
	}
	must(t, f.Close())
	must(t, s.Close())
	check(t, d)
	s = mount(t, d, ext4.Config{})
	v = newView(s)
	if got := content(t, v, "f"); !bytes.Equal(got, m.b) {
		t.Error("opened again, the content differs")
	}
	free := s.Usage().BlocksFree
	must(t, v.Unlink(v.Dir, "f"))
	if s.Usage().BlocksFree < free {
		t.Error("nothing is given back")
	}
	must(t, s.Close())
	check(t, d)
}

// model is the expected content of the file.
type model struct {
	rnd   *rand.Rand
	b     []byte
	block int
}

const most = 600_000

func (m *model) grow(n int) {
	if n > len(m.b) {
		m.b = append(m.b, make([]byte, n-len(m.b))...)
	}
}

// change makes a random change to the model, and returns the same change as a function for the file, with its
// expected error.
func (m *model) change(f *fs.File) (call string, do func() error, want error) {
	a := f.Handle().(fs.Allocator)
	offset, n := m.rnd.IntN(most/2), 1+m.rnd.IntN(60_000)
	allocate := func(mode fs.AllocateMode) func() error {
		offset, n := int64(offset), int64(n)
		return func() error { return a.Allocate(mode, offset, n) }
	}
	switch m.rnd.IntN(9) {
	case 0, 1, 2:
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(m.rnd.Uint32()) | 1
		}
		m.grow(offset + n)
		copy(m.b[offset:], data)
		return "write", func() error {
			got, err := f.WriteAt(data, int64(offset))
			if err == nil && got != n {
				err = linux.EIO
			}
			return err
		}, nil
	case 3:
		if offset < len(m.b) {
			m.b = m.b[:offset:offset]
		}
		m.grow(offset)
		return "truncate", func() error { return f.Truncate(int64(offset)) }, nil
	case 4:
		m.zero(offset, n)
		return "punch", allocate(fs.PunchHole | fs.KeepSize), nil
	case 5:
		if m.rnd.IntN(2) == 0 {
			m.zero(offset, n)
			return "zero, keeping the size", allocate(fs.ZeroRange | fs.KeepSize), nil
		}
		m.grow(offset + n)
		m.zero(offset, n)
		return "zero", allocate(fs.ZeroRange), nil
	case 6:
		m.grow(offset + n)
		return "allocate", allocate(0), nil
	}
	offset -= offset % m.block
	n += m.block - n%m.block
	if m.rnd.IntN(2) == 0 && len(m.b) < most {
		if offset >= len(m.b) {
			return "insert behind the end", allocate(fs.InsertRange), linux.EINVAL
		}
		m.b = append(m.b[:offset:offset], append(make([]byte, n), m.b[offset:]...)...)
		return "insert", allocate(fs.InsertRange), nil
	}
	if offset+n >= len(m.b) {
		return "collapse to the end", allocate(fs.CollapseRange), linux.EINVAL
	}
	m.b = append(m.b[:offset:offset], m.b[offset+n:]...)
	return "collapse", allocate(fs.CollapseRange), nil
}

func (m *model) zero(offset, n int) {
	if offset < len(m.b) {
		clear(m.b[offset:min(len(m.b), offset+n)])
	}
}

// The disk becomes full in the middle of a write: a block is left for data, but none for the extent tree. The write
// returns the number of bytes written. No block is left allocated for the others.
func TestFullInTheMiddle(t *testing.T) {
	for free := 3; free < 12; free++ {
		d := loadImage(t, makeImage(t, "8M", "-b", "1024"))
		s := mount(t, d, ext4.Config{Interval: time.Hour})
		v := newView(s)
		f, err := v.Open(v.Dir, "new", fs.ReadWrite|fs.Create, 0o644)
		must(t, err)
		full, err := v.Open(v.Dir, "full", fs.ReadWrite|fs.Create, 0o644)
		must(t, err)
		a := full.Handle().(fs.Allocator)
		size := int64(0)
		for unit := int64(1 << 20); unit >= 1024; {
			if err := a.Allocate(0, size, unit); err == nil {
				size += unit
			} else {
				unit /= 2
			}
		}
		for i := range free { // frees single blocks that are not adjacent, so that each needs an extent
			must(t, a.Allocate(fs.PunchHole|fs.KeepSize, int64(i)*2048, 1024))
		}
		must(t, s.Sync())
		data := bytes.Repeat([]byte{7}, 20<<10)
		n, err := f.WriteAt(data, 0)
		if err != nil || n == 0 {
			t.Errorf("%d free blocks: %d bytes, %v", free, n, err)
		}
		if got := content(t, v, "new"); !bytes.Equal(got, data[:n]) {
			t.Errorf("%d free blocks: the file has %d bytes, want %d", free, len(got), n)
		}
		must(t, errors.Join(f.Close(), full.Close(), s.Close()))
		check(t, d)
	}
}
