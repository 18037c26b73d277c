package qtest

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"sync"

	"loam/driver"
	"loam/driver/virtio/model"
)

// connection is the socket to QEMU. QEMU answers each request line with a response line; between them it sends lines
// about interrupts. Requests do not allocate, because tests count the allocations of drivers.
type connection struct {
	model.Lines // state of the I/O APIC's inputs, as QEMU reports it

	c net.Conn

	mu   sync.Mutex // serialises requests; guards line
	line []byte
	// answers has capacity 1. The goroutine loop sends responses, and closes the channel when QEMU has exited; the
	// method question receives.
	answers chan answer
}

// answer is a response of QEMU.
type answer struct {
	ok    bool
	value uint64
	bytes []byte // the response; set instead of value if it has more than 8 bytes
}

func newConnection(c net.Conn) *connection {
	return &connection{c: c, answers: make(chan answer, 1)}
}

// loop reads responses and interrupts from QEMU until the connection is closed.
func (c *connection) loop() {
	defer close(c.answers)
	in := bufio.NewReaderSize(c.c, 1<<20) // the buffer is as long as the longest line
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		line = bytes.TrimSpace(line)
		if event, ok := bytes.CutPrefix(line, []byte("IRQ ")); ok {
			kind, number, _ := bytes.Cut(event, []byte(" "))
			if n, ok := parse(number, 10); ok {
				c.Set(uint32(n), kind[0] == 'r')
			}
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("OK"))
		a := answer{ok: ok}
		if value, isNumber := bytes.CutPrefix(value, []byte(" 0x")); isNumber {
			if len(value) > 16 {
				a.bytes, _ = hex.AppendDecode(nil, value)
			} else {
				a.value, a.ok = parse(value, 16)
			}
		}
		c.answers <- a
	}
}

// parse parses a number that has no prefix for its base.
func parse(digits []byte, base uint64) (v uint64, ok bool) {
	for _, d := range digits {
		n := uint64(d - '0')
		if d >= 'a' {
			n = uint64(d-'a') + 10
		}
		if n >= base {
			return 0, false
		}
		v = v*base + n
	}
	return v, len(digits) > 0
}

func (c *connection) close() { c.c.Close() }

// ask sends a command with numeric arguments and returns the number in the response. ok is false if the response
// reports an error, or if QEMU has exited.
func (c *connection) ask(command string, numbers ...uint64) (v uint64, ok bool) {
	a := c.question(command, numbers...)
	return a.value, a.ok
}

func (c *connection) question(command string, numbers ...uint64) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line = append(c.line[:0], command...)
	for _, n := range numbers {
		c.line = strconv.AppendUint(append(c.line, " 0x"...), n, 16)
	}
	c.line = append(c.line, '\n')
	if _, err := c.c.Write(c.line); err != nil {
		return answer{}
	}
	return <-c.answers
}

// read requests the number at an address. It returns all ones if there is no response.
func (c *connection) read(command string, at uint64) uint64 {
	if v, ok := c.ask(command, at); ok {
		return v
	}
	return ^uint64(0)
}

func (c *connection) write(command string, at, v uint64) { c.ask(command, at, v) }

// I/O ports, by which connection implements driver.Ports.

func (c *connection) In8(port uint16) uint8       { return uint8(c.read("inb", uint64(port))) }
func (c *connection) In16(port uint16) uint16     { return uint16(c.read("inw", uint64(port))) }
func (c *connection) In32(port uint16) uint32     { return uint32(c.read("inl", uint64(port))) }
func (c *connection) Out8(port uint16, v uint8)   { c.write("outb", uint64(port), uint64(v)) }
func (c *connection) Out16(port uint16, v uint16) { c.write("outw", uint64(port), uint64(v)) }
func (c *connection) Out32(port uint16, v uint32) { c.write("outl", uint64(port), uint64(v)) }

// registers is a range of registers at a physical address.
type registers struct {
	c       *connection
	address uint64
	size    int
}

// Registers implements driver.Machine.
func (c *connection) Registers(address uint64, size int) (driver.Registers, error) {
	if address < memorySize {
		return nil, fmt.Errorf("qtest: memory is at %#x", address)
	}
	return &registers{c, address, size}, nil
}

// at checks that an access is aligned and in range, and returns its physical address.
func (r *registers) at(at, width int) uint64 {
	if at < 0 || at%width != 0 || at > r.size-width {
		panic(fmt.Sprintf("qtest: access of %d bytes at %#x of %#x", width, at, r.size))
	}
	return r.address + uint64(at)
}

func (r *registers) Size() int                { return r.size }
func (r *registers) Read8(at int) uint8       { return uint8(r.c.read("readb", r.at(at, 1))) }
func (r *registers) Read16(at int) uint16     { return uint16(r.c.read("readw", r.at(at, 2))) }
func (r *registers) Read32(at int) uint32     { return uint32(r.c.read("readl", r.at(at, 4))) }
func (r *registers) Read64(at int) uint64     { return r.c.read("readq", r.at(at, 8)) }
func (r *registers) Write8(at int, v uint8)   { r.c.write("writeb", r.at(at, 1), uint64(v)) }
func (r *registers) Write16(at int, v uint16) { r.c.write("writew", r.at(at, 2), uint64(v)) }
func (r *registers) Write32(at int, v uint32) { r.c.write("writel", r.at(at, 4), uint64(v)) }
func (r *registers) Write64(at int, v uint64) { r.c.write("writeq", r.at(at, 8), v) }
