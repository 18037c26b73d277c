package acpi

import "bytes"

// The DSDT is a program in ACPI Machine Language, AML (ACPI 6.5 chapter 20). The kernel needs only a few constants from
// it. AML compilers encode each of these constants in one way only. So the kernel searches for that encoding and needs
// no interpreter. A value that firmware computes is reported as missing.

// Opcodes of AML (section 20.2).
const (
	amlName    = 0x08
	amlByte    = 0x0a
	amlWord    = 0x0b
	amlDword   = 0x0c
	amlString  = 0x0d
	amlBuffer  = 0x11
	amlPackage = 0x12

	amlExtended = 0x5b
	amlRegion   = 0x80 // opcode of an operation region, after amlExtended
	amlLocal0   = 0x60
	amlAnd      = 0x7b
	amlNotify   = 0x86
	amlEqual    = 0x93
)

// SleepTypes returns the values of SLP_TYP for the control registers PM1a and PM1b, with which the machine is switched
// off: the first elements of package \_S5 (section 7.4.2.6). ok is false if the DSDT has no such constants.
func SleepTypes(dsdt []byte) (a, b uint8, ok bool) {
	body := findName(dsdt, "_S5_", amlPackage)
	if len(body) < 1 {
		return 0, 0, false
	}
	body = body[1:] // skip the number of elements
	first, body, ok := amlInteger(body)
	if !ok {
		return 0, 0, false
	}
	second, _, ok := amlInteger(body)
	if !ok {
		second = 0 // on a machine with one control register, the second value may be missing
	}
	const widest = 7 // SLP_TYP has three bits
	return uint8(first), uint8(second), first <= widest && second <= widest
}

// VirtioMMIO is a virtio device that the DSDT describes, as in QEMU's microvm and in Firecracker. Its AML has _HID
// "LNRO0005" and a _CRS with its registers and its interrupt line.
type VirtioMMIO struct {
	Address uint64
	Size    uint32
	GSI     uint32
	Level   bool
	Low     bool
}

// NextVirtioMMIO returns the first device at or after offset at in the DSDT. The first call passes 0 as at, and each
// later call the previous next.
func NextVirtioMMIO(dsdt []byte, at int) (d VirtioMMIO, next int, ok bool) {
	const id = "LNRO0005\x00"
	for at >= 0 && at < len(dsdt) {
		n := bytes.Index(dsdt[at:], []byte(id))
		if n < 0 {
			break
		}
		at += n + len(id)
		rest := dsdt[at:]
		if end := bytes.Index(rest, []byte(id)); end >= 0 {
			rest = rest[:end] // the text after this device's ID, up to the ID of the next device
		}
		if d, memory, line := resources(findName(rest, "_CRS", amlBuffer)); memory && line {
			return d, at, true
		}
	}
	return d, len(dsdt), false
}

// resources reads the first memory range and the first interrupt line of a device (section 6.4).
func resources(buffer []byte) (d VirtioMMIO, memory, line bool) {
	_, b, ok := amlInteger(buffer) // skips the size of the buffer, which precedes the resources
	const (
		large         = 0x80
		memoryFixed32 = large | 6 // section 6.4.3.4
		interrupt     = large | 9 // section 6.4.3.6
	)
	for ok && len(b) > 3 && b[0]&large != 0 {
		n := int(le.Uint16(b[1:]))
		if n > len(b)-3 {
			return d, false, false
		}
		body := b[3 : 3+n]
		switch {
		case b[0] == memoryFixed32 && n >= 9 && !memory:
			d.Address, d.Size, memory = uint64(le.Uint32(body[1:])), le.Uint32(body[5:]), true
		case b[0] == interrupt && n >= 6 && body[1] > 0 && !line:
			d.GSI, line = le.Uint32(body[2:]), true
			d.Level, d.Low = body[0]&2 == 0, body[0]&4 != 0
		}
		b = b[3+n:]
	}
	return d, memory, line
}

// Button is the power button of a hardware-reduced machine such as QEMU's microvm. It consists of a Generic Event
// Device (section 5.6.9), which raises an interrupt for an event, and a 32-bit register of pending events. Reading the
// register clears it.
type Button struct {
	Register Register
	Mask     uint32 // the bit of Register that stands for the button
	GSI      uint32
	Level    bool
	Low      bool
}

// FindButton finds the power button. It recognises only the AML code that QEMU generates: code that notifies the button
// if a bit of the register was set.
func FindButton(dsdt []byte) (b Button, ok bool) {
	_, device, ok := bytes.Cut(dsdt, []byte("ACPI0013\x00"))
	if !ok {
		return b, false
	}
	d, _, line := resources(findName(device, "_CRS", amlBuffer))
	_, region, ok := bytes.Cut(device, []byte{amlExtended, amlRegion, 'E', 'R', 'E', 'G', byte(SpaceMemory)})
	address, _, known := amlInteger(region)
	before, _, notified := bytes.Cut(device, []byte{amlNotify, 'P', 'W', 'R', 'B'})
	if !line || !ok || !known || !notified || len(before) < 8 {
		return b, false
	}
	test := before[len(before)-8:] // the encoding of LEqual(And(Local0, mask), mask)
	mask := test[7]
	if !bytes.Equal(test, []byte{amlEqual, amlAnd, amlLocal0, amlByte, mask, 0, amlByte, mask}) {
		return b, false
	}
	return Button{Register{uint64(address), SpaceMemory}, uint32(mask), d.GSI, d.Level, d.Low}, true
}

// findName finds Name(name, X), where X is a package or a buffer with opcode op, and returns the content of X after its
// length. A root prefix (\) may precede the name. findName returns nil if there is no such definition.
func findName(aml []byte, name string, op uint8) []byte {
	for {
		n := bytes.Index(aml, []byte(name))
		if n < 0 {
			return nil
		}
		named := n >= 1 && aml[n-1] == amlName || n >= 2 && aml[n-1] == '\\' && aml[n-2] == amlName
		aml = aml[n+len(name):]
		if !named || len(aml) == 0 || aml[0] != op {
			continue
		}
		if body := packageBody(aml[1:]); body != nil {
			return body
		}
	}
}

// packageBody reads a PkgLength (section 20.2.4), which includes its own size, and returns the bytes that it
// encloses; nil if it is invalid.
func packageBody(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	more := int(b[0] >> 6) // number of length bytes after the first
	length := int(b[0] & 0x3f)
	if more > 0 {
		if len(b) <= more {
			return nil
		}
		length &= 0xf
		for i := range more {
			length |= int(b[1+i]) << (4 + 8*i)
		}
	}
	if length <= more || length > len(b) {
		return nil
	}
	return b[1+more : length]
}

// amlInteger reads an integer constant and returns the bytes after it.
func amlInteger(b []byte) (v uint32, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	width := 0
	switch b[0] {
	case 0, 1: // ZeroOp, OneOp
		return uint32(b[0]), b[1:], true
	case amlByte:
		width = 1
	case amlWord:
		width = 2
	case amlDword:
		width = 4
	default:
		return 0, nil, false
	}
	if len(b) < 1+width {
		return 0, nil, false
	}
	for i := range width {
		v |= uint32(b[1+i]) << (8 * i)
	}
	return v, b[1+width:], true
}
