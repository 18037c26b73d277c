package unikernel

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"time"
)

// Of the kernel's output on the control port, only the last byte is kept.
func TestLastByte(t *testing.T) {
	var last lastByte
	if io.Copy(&last, bytes.NewReader(nil)); last.there {
		t.Error("a status of nothing")
	}
	from := io.MultiReader(io.LimitReader(zeros{}, 1<<20), bytes.NewReader([]byte{3, 7}))
	if n, err := io.Copy(&last, from); n != 1<<20+2 || err != nil || !last.there || last.value != 7 {
		t.Errorf("%d bytes, %v: %+v", n, err, last)
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Only a bounded part of QEMU's output is kept, from its beginning.
func TestComplaintsAreBounded(t *testing.T) {
	var c complaints
	if n, err := io.Copy(&c, io.LimitReader(io.MultiReader(bytes.NewReader([]byte("first")), zeros{}), 1<<24)); n != 1<<24 || err != nil {
		t.Errorf("%d bytes are taken, %v", n, err)
	}
	if text := c.text(); len(text) > mostComplaints || text[:5] != "first" {
		t.Errorf("%d bytes are kept, of which the first are %q", len(text), text[:5])
	}
}

// The device of a console has one port. More ports have more queues, and QEMU polls each queue at each event of any device.
func TestConsolesHaveOnePort(t *testing.T) {
	for _, model := range []string{"q35", "pc", "microvm"} {
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		var m monitor
		m.addConsole("folder0", model, null)
		err = m.addChannel(model)
		m.close()
		devices := 0
		for _, arg := range m.args {
			if strings.HasPrefix(arg, "virtio-serial") {
				devices++
				if !strings.Contains(arg, ",max_ports=1") {
					t.Errorf("%s: %s", model, arg)
				}
			}
		}
		if devices != 2 || err != nil {
			t.Errorf("%s: %d devices, %v: %q", model, devices, err, m.args)
		}
	}
}

// A machine ends on SIGTERM even if its kernel asks for the time endlessly and never reads the serial port.
func TestFloodAndSIGTERM(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "serial"), os.NewFile(uintptr(pair[1]), "serial")
	defer ours.Close()
	defer theirs.Close()
	killed := make(chan struct{}, 8)
	incoming, times, done, ended := make(chan os.Signal, 1), make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	s := serial{ours, func() error { killed <- struct{}{}; return nil }, 10 * time.Millisecond, nil}
	go func() { s.loop(incoming, times, done); close(ended) }()
	go takeQuestions(&endless{until: done}, times, nil)
	for s.write(make([]byte, 4096)) == nil { // until the serial port's buffer is full
	}
	incoming <- syscall.SIGTERM
	<-killed
	close(done)
	<-ended
}

// KillSignal kills the machine at once, and is not forwarded to its kernel.
func TestKillSignal(t *testing.T) {
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	incoming, done := make(chan os.Signal, 1), make(chan struct{})
	var killed atomic.Bool
	s := serial{theirs, func() error { close(done); return nil }, time.Minute, &killed}
	incoming <- KillSignal
	s.loop(incoming, nil, done)
	theirs.Close()
	if sent, err := io.ReadAll(ours); len(sent) > 0 || err != nil || !killed.Load() {
		t.Errorf("the kernel receives %v, %v; killed is %v", sent, err, killed.Load())
	}
}

// Started is called once, at the first request for the time.
func TestStartedByFirstQuestion(t *testing.T) {
	calls := 0
	times := make(chan struct{}, 1)
	takeQuestions(strings.NewReader(""), times, func() { calls++ })
	if calls != 0 {
		t.Errorf("%d calls without a request", calls)
	}
	takeQuestions(iotest.OneByteReader(strings.NewReader("\x00\x00")), times, func() { calls++ })
	if calls != 1 {
		t.Errorf("%d calls for two requests", calls)
	}
}

// endless reads bytes until a channel is closed.
type endless struct{ until <-chan struct{} }

func (e *endless) Read(p []byte) (int, error) {
	select {
	case <-e.until:
		return 0, io.EOF
	default:
		return len(p), nil
	}
}

// A program without a terminal among its standard streams cannot read the terminal.
func TestNoTerminal(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if terminalOf(null, null, null) != nil {
		t.Error("redirected streams come with a terminal")
	}
	_, terminal := openTerminal(t)
	if terminalOf(null, terminal, null) == nil {
		t.Error("there is no terminal beside a redirected standard input")
	}
}
