package channel

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/abi/linux"
)

// plug is a program's console that is connected directly to the command's end.
type plug struct{ net.Conn }

func (plug) Flush() error { return nil }

// joined returns the program's streams and the command's end of one channel. The error channel receives the result of
// Serve.
func joined(c *Command, ordered bool) ([3]*Stream, net.Conn, <-chan error) {
	ours, theirs := net.Pipe()
	p := NewProgram(func() (Console, error) { return plug{theirs}, nil })
	served := make(chan error, 1)
	go func() { served <- c.Serve(ours) }()
	return p.Streams([3]uint32{linux.S_IFIFO, linux.S_IFIFO, linux.S_IFCHR}, ordered), theirs, served
}

func noise(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

func TestCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := noise(1 << 20)
		var out, errs bytes.Buffer
		s, end, served := joined(&Command{In: bytes.NewReader(data), Out: &out, Errors: &errs}, false)
		buf := make([]byte, 10_000)
		for {
			n, errno := s[0].Read(buf)
			if errno != 0 {
				t.Fatal(errno)
			}
			if n == 0 {
				break
			}
			var both sync.WaitGroup
			both.Go(func() { s[1].Write(buf[:n]) })
			both.Go(func() { s[2].Write(buf[:n]) })
			both.Wait()
		}
		end.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if sha256.Sum256(out.Bytes()) != sha256.Sum256(data) || !bytes.Equal(errs.Bytes(), data) {
			t.Errorf("%d and %d bytes of %d", out.Len(), errs.Len(), len(data))
		}
	})
}

// A stream whose output is not consumed blocks its own writer after Window bytes. It does not block writers of other
// streams.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, to := io.Pipe()
		var errs bytes.Buffer
		s, end, served := joined(&Command{Out: to, Errors: &errs}, false)
		done := make(chan int, 1)
		go func() {
			n, _ := s[1].Write(noise(4 * Window))
			done <- n
		}()
		synctest.Wait()
		if len(done) > 0 {
			t.Error("a write of more than a window returned")
		}
		if n, errno := s[2].Write([]byte("seen")); n != 4 || errno != 0 || errs.String() != "seen" {
			t.Errorf("standard error: %d, %v, %q", n, errno, &errs)
		}
		got := make([]byte, 4*Window)
		io.ReadFull(slow, got)
		if n := <-done; n != 4*Window || !bytes.Equal(got, noise(4*Window)) {
			t.Errorf("%d bytes", n)
		}
		end.Close()
		<-served
	})
}

// The command reads no more input than the program asked for.
func TestReadsNoFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := bytes.NewReader([]byte("onetwo"))
		s, end, served := joined(&Command{In: in}, false)
		buf := make([]byte, 3)
		if n, errno := s[0].Read(buf); n != 3 || errno != 0 || string(buf) != "one" || in.Len() != 3 {
			t.Errorf("%d, %v, %q; %d are left", n, errno, buf, in.Len())
		}
		end.Close()
		<-served
	})
}

// The program can read its controlling terminal while a read of standard input blocks.
func TestReadsTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, _ := io.Pipe()
		s, end, served := joined(&Command{In: waits, Keys: bytes.NewReader([]byte("key"))}, false)
		go s[0].Read(make([]byte, 8))
		synctest.Wait()
		buf := make([]byte, 8)
		if n, errno := s[2].Read(buf); string(buf[:n]) != "key" || errno != 0 {
			t.Errorf("the terminal says %q, %v", buf[:n], errno)
		}
		if _, errno := s[1].Read(buf); errno != linux.EBADF {
			t.Errorf("output that is no terminal: %v", errno)
		}
		end.Close()
		<-served
		waits.Close()
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// The program gets the errors of the host's streams, and an error when the command ends.
func TestErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := failing{linux.ENOSPC}
		s, end, served := joined(&Command{In: failing{linux.EIO}, Out: full, Errors: full}, true)
		if _, errno := s[1].Write([]byte("x")); errno != linux.ENOSPC {
			t.Error(errno)
		}
		if _, errno := s[0].Read(make([]byte, 1)); errno != linux.EIO {
			t.Error(errno)
		}
		if errno := s[0].Ioctl(1, nil); errno != linux.ENOTTY {
			t.Error(errno)
		}
		end.Close()
		<-served
		synctest.Wait()
		if _, errno := s[2].Write([]byte("x")); errno != linux.EIO {
			t.Error(errno)
		}
	})
}

func TestResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got bytes.Buffer
		ours, theirs := net.Pipe()
		p := NewProgram(func() (Console, error) { return plug{theirs}, nil })
		served := make(chan error, 1)
		go func() { served <- (&Command{Results: &got}).Serve(ours) }()
		data := noise(100_000)
		if n, err := p.Results().Write(data); n != len(data) || err != nil || !bytes.Equal(got.Bytes(), data) {
			t.Errorf("%d bytes written, %v; %d taken", n, err, got.Len())
		}
		theirs.Close()
		<-served
	})
}

func TestTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end, served := joined(&Command{Terminal: func(fd, request int, arg []byte) linux.Errno {
			arg[0] += byte(fd + request)
			return 0
		}}, false)
		arg := []byte{1, 2}
		if errno := s[2].Ioctl(40, arg); errno != 0 || arg[0] != 43 || arg[1] != 2 {
			t.Errorf("%v %v", errno, arg)
		}
		end.Close()
		<-served
	})
}

// A malformed frame makes the end that receives it return an error. Neither end blocks.
func TestMalformedFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- (&Command{}).Serve(ours) }()
		theirs.Write([]byte("GET / HT"))
		if err := <-served; err != ErrFrame {
			t.Error(err)
		}
		p := NewProgram(func() (Console, error) { return plug{theirs}, nil })
		s := p.Streams([3]uint32{}, false)
		go func() {
			io.ReadFull(ours, make([]byte, HeaderLen+ResultLen))
			ours.Write([]byte("nonsense"))
		}()
		if _, errno := s[0].Read(make([]byte, 1)); errno != linux.EIO {
			t.Error(errno)
		}
	})
}

// The command disconnects a program that sends empty output frames without waiting for answers, as it does one that
// exceeds its window.
func TestEmptyOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked, to := io.Pipe()
		ours, theirs := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- (&Command{Out: to}).Serve(ours) }()
		go io.Copy(io.Discard, theirs)
		theirs.Write(Append(nil, Output, []byte("x")))
		empty := Append(nil, Output, nil)
		sent := 0
		for ; sent < 4*Window; sent++ {
			theirs.SetWriteDeadline(time.Now().Add(time.Second))
			if _, err := theirs.Write(empty); err != nil {
				break
			}
		}
		if sent >= 4*Window {
			t.Errorf("%d pieces are waiting", sent)
		}
		blocked.Close()
		theirs.Close()
		<-served
	})
}
