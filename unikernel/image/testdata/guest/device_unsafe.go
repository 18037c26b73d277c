package main

import (
	"bytes"
	"fmt"
	"time"
	"unsafe"

	"loam/driver"
	"loam/driver/pci"
	"loam/kernel"
	"loam/kernel/device"
)

// Memory and interrupts of devices, tested on QEMU's educational device (docs/specs/edu.txt in its sources). The
// machine has two of them, which share an interrupt line.

// Registers of the educational device.
const (
	eduVendor, eduDevice = 0x1234, 0x11e8

	eduStatus = 0x24 // interrupt status
	eduRaise  = 0x60
	eduAck    = 0x64
	eduSource = 0x80
	eduTarget = 0x88
	eduCount  = 0x90
	eduDo     = 0x98 // bit 0: start, and still running; bit 1: from the device to memory

	eduBuffer = 0x40000 // address of the buffer as the device sees it
	eduSize   = 4000    // bytes per transfer; the device rejects its full 4096
)

// edus finds the devices, and returns their registers and the interrupt line that they share.
func edus(m driver.Machine) (registers []driver.Registers, line uint32) {
	bus, err := pci.Scan(m, nil)
	if err != nil {
		panic(err)
	}
	for _, f := range bus.Functions() {
		if f.Vendor != eduVendor || f.Device != eduDevice {
			continue
		}
		f.Enable()
		r, err := f.Registers(0, 0, 0x100)
		if err != nil {
			panic(err)
		}
		if line != 0 && line != uint32(f.Interrupt) {
			panic("they do not share a line")
		}
		registers, line = append(registers, r), uint32(f.Interrupt)
	}
	return registers, line
}

// sharedLine makes the two devices interrupt in turn and at the same time. The driver of each must handle its own
// interrupts only.
func sharedLine() {
	const rounds = 30
	m := device.Open()
	registers, line := edus(m)
	seen := make(chan int)
	for n, r := range registers {
		i, err := m.Line(line, driver.LevelHigh)
		if err != nil {
			panic(err)
		}
		go func() {
			for range i.C() {
				if status := r.Read32(eduStatus); status != 0 {
					r.Write32(eduAck, status)
					seen <- n
				}
				i.Done()
			}
		}()
	}
	count := [2]int{}
	for round := range rounds {
		both := round%3 == 0
		registers[round%2].Write32(eduRaise, 1)
		if both {
			registers[1-round%2].Write32(eduRaise, 1)
			count[<-seen]++
		}
		count[<-seen]++
	}
	fmt.Println("shared by", len(registers), "each rang", count)
}

// deviceMemory makes a device read from the heap and write to DMA memory.
func deviceMemory() {
	m := device.Open()
	registers, _ := edus(m)
	edu := registers[0]
	move := func(from, to uint64, n, way int) {
		edu.Write64(eduSource, from)
		edu.Write64(eduTarget, to)
		edu.Write64(eduCount, uint64(n))
		edu.Write64(eduDo, uint64(1|way<<1))
		for edu.Read64(eduDo)&1 != 0 {
			time.Sleep(time.Millisecond)
		}
	}
	const align = 64 << 10
	buffer, err := m.Allocate(3*align+1, align)
	if err != nil || buffer.Address%align != 0 || len(bytes.Trim(buffer.Bytes, "\x00")) != 0 {
		panic(fmt.Sprint("a buffer at ", buffer.Address, err))
	}
	if at := uintptr(unsafe.Pointer(&buffer.Bytes[0])); at != kernel.WindowTo(buffer.Address) {
		panic("a buffer is seen elsewhere")
	}
	sent := make([]byte, eduSize)
	for i := range sent {
		sent[i] = byte(i * 7)
	}
	var pieces [2]driver.Segment
	n, ok := m.Segments(sent, pieces[:])
	if !ok {
		panic("the heap cannot be reached")
	}
	at := uint64(eduBuffer)
	for _, p := range pieces[:n] {
		move(p.Address, at, p.Size, 0)
		at += uint64(p.Size)
	}
	move(eduBuffer, buffer.Address+align, eduSize, 1)
	if !bytes.Equal(buffer.Bytes[align:][:eduSize], sent) {
		panic("other bytes have arrived")
	}
	const offset, size = 100, 3 * align / 2
	if n, ok := m.Segments(buffer.Bytes[offset:][:size], pieces[:]); !ok || n != 1 || pieces[0] != (driver.Segment{Address: buffer.Address + offset, Size: size}) {
		panic(fmt.Sprint("a part of a buffer has the segments ", pieces[:n]))
	}
	if n, ok := m.Segments(buffer.Bytes[offset:offset], pieces[:]); !ok || n != 0 {
		panic(fmt.Sprint("no bytes have the segments ", pieces[:n]))
	}
	m.Free(buffer)
	again, err := m.Allocate(3*align+1, align)
	if err != nil || again.Address != buffer.Address || again.Bytes[align+1] != 0 {
		panic("a buffer is not used again, or not zero")
	}
	if _, err := m.Allocate(1<<40, 1); err == nil {
		panic("there is more than there is")
	}
	fmt.Println("moved")
}
