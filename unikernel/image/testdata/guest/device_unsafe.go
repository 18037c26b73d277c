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

// Memory and interrupts of devices, on QEMU's device for such purposes (docs/specs/edu.txt
// in its sources), of which the machine has two, on one line.

// Registers of that device.
const (
	eduVendor, eduDevice = 0x1234, 0x11e8

	eduStatus = 0x24 // of the interrupt
	eduRaise  = 0x60
	eduAck    = 0x64
	eduSource = 0x80
	eduTarget = 0x88
	eduCount  = 0x90
	eduDo     = 0x98 // bit 0: go, and it goes; bit 1: to memory

	eduBuffer = 0x40000 // as the device sees it
	eduSize   = 4000    // a little less than all, which it does not take
)

// edus are the devices, with the line that they share.
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

// sharedLine has both devices interrupt by turns and at once; the driver of each sees to
// its own.
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

// deviceMemory has a device read the heap and write to memory of its own.
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
