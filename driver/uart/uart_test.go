package uart_test

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loam/driver"
	"loam/driver/uart"
)

// chip is a model of a 16550 and its machine.
type chip struct {
	driver.Machine
	c chan struct{} // the channel that C of the chip's interrupt line returns

	mu      sync.Mutex // guards all fields below
	scratch uint8
	control uint8
	enabled uint8
	input   []byte // bytes that were received from outside
	output  []byte
	stuck   bool                        // the transmitter does not become empty, so no byte is sent
	read    func(register uint16) uint8 // if not nil, it answers register reads, and no interrupt is raised
}

func newChip() *chip { return &chip{c: make(chan struct{}, 1)} }

func (c *chip) C() <-chan struct{} { return c.c }
func (c *chip) Done()              {}
func (c *chip) Close()             {}

func (c *chip) Line(uint32, driver.Trigger) (driver.Interrupt, error) { return c, nil }

func (c *chip) In8(port uint16) uint8 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read != nil {
		return c.read(port - uart.COM1)
	}
	switch port - uart.COM1 {
	case 0:
		if len(c.input) == 0 {
			return 0
		}
		b := c.input[0]
		c.input = c.input[1:]
		return b
	case 2:
		return 0xc1
	case 5:
		s := uint8(0x60)
		if c.stuck {
			s = 0
		}
		if len(c.input) > 0 {
			s |= 1
		}
		return s
	case 7:
		return c.scratch
	}
	return 0
}

func (c *chip) Out8(port uint16, v uint8) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch port - uart.COM1 {
	case 0:
		if c.control&0x80 == 0 {
			c.output = append(c.output, v)
		}
	case 1:
		if c.control&0x80 == 0 {
			c.enabled = v
		}
	case 3:
		c.control = v
	case 7:
		c.scratch = v
	}
	c.interrupt()
}

// interrupt raises the line if an interrupt condition holds. The caller holds the lock.
func (c *chip) interrupt() {
	if c.read != nil {
		return
	}
	if c.enabled&1 != 0 && len(c.input) > 0 || c.enabled&2 != 0 && !c.stuck {
		select {
		case c.c <- struct{}{}:
		default:
		}
	}
}

// typed adds bytes that the chip receives from its line.
func (c *chip) typed(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.input = append(c.input, b...)
	c.interrupt()
}

func open(t *testing.T, c *chip) *uart.Port {
	t.Helper()
	p, err := uart.Open(c, uart.COM1, uart.COM1IRQ, driver.EdgeHigh)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// More bytes than any buffer holds are transferred in both directions, in order.
func TestTransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChip()
		p := open(t, c)
		text := bytes.Repeat([]byte("serial text. "), 2000)
		c.typed(text)
		synctest.Wait() // the receive buffer is full, and further input stays in the chip
		got := make([]byte, len(text))
		if _, err := io.ReadFull(p, got); err != nil || !bytes.Equal(got, text) {
			t.Errorf("in: %v, equal: %v", err, bytes.Equal(got, text))
		}
		if n, err := p.Write(text); n != len(text) || err != nil {
			t.Errorf("Write = %d, %v", n, err)
		}
		p.Close()
		if !bytes.Equal(c.output, text) {
			t.Errorf("out: %d bytes", len(c.output))
		}
		if n := p.Counters(); n.Received != uint64(len(text)) || n.Sent != uint64(len(text)) || n.Overruns != 0 {
			t.Errorf("%+v", n)
		}
		if c.enabled != 0 {
			t.Error("interrupts are still on")
		}
	})
}

func TestAbsent(t *testing.T) {
	c := newChip()
	c.read = func(uint16) uint8 { return 0xff }
	if _, err := uart.Open(c, uart.COM1, uart.COM1IRQ, driver.EdgeHigh); !errors.Is(err, uart.ErrAbsent) {
		t.Errorf("got %v, want ErrAbsent", err)
	}
}

// Close unblocks Read and Write, after drainBound if the port does not send.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChip()
		c.stuck = true
		p := open(t, c)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if _, err := p.Read(make([]byte, 1)); !errors.Is(err, uart.ErrClosed) {
				t.Errorf("Read: %v", err)
			}
		})
		waiting.Go(func() {
			if n, err := p.Write(make([]byte, 10_000)); !errors.Is(err, uart.ErrClosed) || n != 4096 {
				t.Errorf("Write: %d, %v", n, err)
			}
		})
		synctest.Wait()
		start := time.Now()
		p.Close()
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("Close took %v", took)
		}
		waiting.Wait()
	})
}

// The removal of a port is an error, also for calls in progress.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChip()
		p := open(t, c)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if _, err := p.Read(make([]byte, 1)); !errors.Is(err, uart.ErrGone) {
				t.Errorf("Read: %v", err)
			}
		})
		synctest.Wait()
		c.mu.Lock()
		c.read = func(uint16) uint8 { return 0xff }
		c.mu.Unlock()
		p.Write([]byte("x"))
		waiting.Wait()
		if _, err := p.Write([]byte("x")); !errors.Is(err, uart.ErrGone) {
			t.Errorf("Write: %v", err)
		}
	})
}

// A lost interrupt delays output but does not stop it.
func TestLostInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChip()
		c.stuck = true
		p := open(t, c)
		p.Write([]byte("late"))
		synctest.Wait()
		c.mu.Lock()
		c.stuck = false // the transmitter becomes empty without an interrupt
		c.mu.Unlock()
		time.Sleep(time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		if string(c.output) != "late" {
			t.Errorf("sent %q", c.output)
		}
	})
}

// Close returns even if the port reads as arbitrary values.
func FuzzPort(f *testing.F) {
	f.Add([]byte{0x61, 0x41})
	f.Add([]byte{0xff})
	f.Add([]byte{0, 0x20, 1, 2})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			c := newChip()
			p := open(t, c)
			at := 0
			c.mu.Lock()
			c.read = func(uint16) uint8 {
				at++
				return script[at%len(script)]
			}
			c.mu.Unlock()
			var both sync.WaitGroup
			both.Go(func() { p.Write(make([]byte, 5000)) })
			both.Go(func() { io.CopyN(io.Discard, p, 1000) })
			synctest.Wait()
			time.Sleep(10 * time.Second)
			p.Close()
			both.Wait()
		})
	})
}
