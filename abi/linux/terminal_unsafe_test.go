package linux

import (
	"bytes"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// Tests of the functions for settings of a terminal. The judge is a pseudo-terminal of the Linux that runs the test.

// pty is the slave side of a new pseudo-terminal.
type pty struct {
	t  *testing.T
	fd int
}

func newPTY(t *testing.T) pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	p := pty{t, int(master.Fd())}
	p.request(TIOCSPTLCK, make([]byte, 4)) // unlocks the slave
	fd, _, errno := syscall.Syscall(SYS_IOCTL, master.Fd(), TIOCGPTPEER, O_RDWR|O_NOCTTY)
	if errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(func() { syscall.Close(int(fd)) })
	return pty{t, int(fd)}
}

// request makes an ioctl(2) whose argument is the address of b: the reason for unsafe.
func (p pty) request(request uintptr, b []byte) {
	p.t.Helper()
	if _, _, errno := syscall.Syscall(SYS_IOCTL, uintptr(p.fd), request, uintptr(unsafe.Pointer(&b[0]))); errno != 0 {
		p.t.Fatalf("request %#x: %v", request, errno)
	}
}

func (p pty) settings() Termios {
	p.t.Helper()
	b := make([]byte, SizeofTermios2)
	p.request(TCGETS2, b)
	return ParseTermios(b)
}

// set sets the settings, and returns those that Linux has made of them: a pseudo-terminal does not take every setting.
func (p pty) set(s Termios) Termios {
	p.t.Helper()
	b := make([]byte, SizeofTermios2)
	s.Put(b)
	p.request(TCSETS2, b)
	return p.settings()
}

// someTermios returns settings with random bits in all fields but the speeds.
func someTermios(rng *rand.Rand, like Termios) Termios {
	s := Termios{Input: rng.Uint32(), Output: rng.Uint32(), Control: like.Control, Local: rng.Uint32(), InSpeed: like.InSpeed, OutSpeed: like.OutSpeed}
	for i := range s.Chars {
		s.Chars[i] = uint8(rng.Uint32())
	}
	return s
}

// The older structure has the lower halves of the flags and the first special characters of the newer one.
func TestTermioOnLinux(t *testing.T) {
	rng, p := rand.New(rand.NewPCG(1, 2)), newPTY(t)
	for range 100 {
		s := p.set(someTermios(rng, p.settings()))
		want, got := make([]byte, SizeofTermio), bytes.Repeat([]byte{0xee}, SizeofTermio)
		p.request(TCGETA, want)
		if s.PutTermio(got); !bytes.Equal(got, want) {
			t.Fatalf("%+v\nas a struct termio %x\non Linux           %x", s, got, want)
		}

		other := someTermios(rng, s)
		other.PutTermio(want)
		p.request(TCSETA, want)
		if s.SetTermio(want); s != p.settings() {
			t.Fatalf("after TCSETA %x\n         %+v\non Linux %+v", want, s, p.settings())
		}
	}
}

// TIOCSLCKTRMIOS keeps the bits and the characters that it names.
func TestLockedOnLinux(t *testing.T) {
	rng, p := rand.New(rand.NewPCG(3, 4)), newPTY(t)
	lock := func(mask Termios) {
		b := make([]byte, SizeofTermios)
		mask.Put(b)
		p.request(TIOCSLCKTRMIOS, b)
	}
	for range 100 {
		lock(Termios{})
		old, mask := p.set(someTermios(rng, p.settings())), someTermios(rng, Termios{})
		for i := range mask.Chars {
			mask.Chars[i] &= uint8(rng.Uint32N(2)) // a half of the characters stays free
		}
		mask.Discipline = uint8(rng.Uint32N(2))
		lock(mask)
		now := someTermios(rng, old)
		if got, want := now.Locked(old, mask), p.set(now); got != want {
			t.Fatalf("%+v\nafter  %+v\nlocked %+v\n         %+v\non Linux %+v", now, old, mask, got, want)
		}
	}
}
