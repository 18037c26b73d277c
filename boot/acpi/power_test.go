package acpi

import (
	"bytes"
	"strings"
	"testing"
)

// dsdt contains the constants that the package searches for, in the form that compilers emit.
var dsdt = bytes.Join([][]byte{
	[]byte("noise _S5_ noise"),
	{amlName}, []byte("_S5_"), {amlPackage, 6, 4, amlByte, 5, 0, 0},
	{amlName}, []byte("_HID"), {amlString}, []byte("LNRO0005\x00"),
	{amlName}, []byte("_CRS"), {amlBuffer, 0x1a, amlByte, 0x17,
		0x86, 9, 0, 1, 0x00, 0x10, 0x00, 0xfe, 0x00, 0x02, 0, 0, // memory at 0xfe001000
		0x89, 6, 0, 3, 1, 16, 0, 0, 0, // interrupt 16, edge-triggered, active high
		0x79, 0},
	{amlName}, []byte("_HID"), {amlString}, []byte("LNRO0005\x00"), // a device without resources
	{amlName}, []byte("_HID"), {amlString}, []byte("LNRO0005\x00"),
	{amlName}, []byte("_CRS"), {amlBuffer, 0x18, amlByte, 0x15,
		0x86, 9, 0, 1, 0x00, 0x12, 0x00, 0xfe, 0x00, 0x02, 0, 0,
		0x89, 6, 0, 1, 1, 17, 0, 0, 0}, // level-triggered
}, nil)

// fadt returns the body of a typical PC's FADT.
func fadt(f *firmware) []byte {
	b := make([]byte, 268-headerLen)
	put32 := func(at int, v uint32) { le.PutUint32(b[at-headerLen:], v) }
	put32(40, uint32(f.table("DSDT", dsdt)))
	le.PutUint16(b[46-headerLen:], 9)
	put32(48, 0xb2)
	b[52-headerLen] = 2
	put32(56, 0x600)
	put32(64, 0x604)
	b[88-headerLen] = 4
	put32(112, flagReset)
	b[116-headerLen] = uint8(SpacePort)
	le.PutUint64(b[120-headerLen:], 0xcf9)
	b[128-headerLen] = 6
	return b
}

func TestPower(t *testing.T) {
	f := newFirmware()
	tables := f.open(t, f.root(2, f.table("FACP", fadt(f))))
	got, ok := tables.Power()
	want := Power{
		Interrupt: 9, Command: 0xb2, Enable: 2, EventLen: 4, ButtonIsFixed: true,
		Event1A: Register{0x600, SpacePort}, Control1A: Register{0x604, SpacePort},
		Reset: Register{0xcf9, SpacePort}, ResetValue: 6,
	}
	if !ok || got != want {
		t.Errorf("got %+v, %v, want %+v", got, ok, want)
	}
	if a, b, ok := SleepTypes(tables.DSDT()); a != 5 || b != 0 || !ok {
		t.Errorf("SleepTypes = %d, %d, %v, want 5, 0", a, b, ok)
	}
}

// The 64-bit registers take precedence, and a hardware-reduced machine has no button in the fixed registers.
func TestPowerReduced(t *testing.T) {
	f := newFirmware()
	body := fadt(f)
	le.PutUint32(body[112-headerLen:], flagReduced)
	for at, address := range map[int]uint64{172: 0x1234567000, 244: 0xfea00200, 256: 0xfea00201} {
		le.PutUint64(body[at-headerLen+4:], address)
	}
	tables := f.open(t, f.root(2, f.table("FACP", body)))
	p, _ := tables.Power()
	if !p.Reduced || p.ButtonIsFixed || p.Reset != (Register{}) {
		t.Errorf("flags: %+v", p)
	}
	if p.Control1A.Address != 0x1234567000 || p.Sleep.Address != 0xfea00200 || p.Status.Address != 0xfea00201 {
		t.Errorf("registers: %+v", p)
	}
}

// Timer prefers the 64-bit register; hardware-reduced machines have no timer.
func TestTimer(t *testing.T) {
	const port, port64 = 0x608, 0xb008
	for _, c := range []struct {
		length byte
		flags  uint32
		wide   bool
		want   Register
	}{
		{4, 0, false, Register{port, SpacePort}},
		{4, 0, true, Register{port64, SpacePort}},
		{4, flagReduced, true, Register{}},
		{0, 0, false, Register{}},
	} {
		f := newFirmware()
		body := fadt(f)
		le.PutUint32(body[76-headerLen:], port)
		body[91-headerLen] = c.length
		le.PutUint32(body[112-headerLen:], c.flags)
		if c.wide {
			body[208-headerLen] = uint8(SpacePort)
			le.PutUint64(body[212-headerLen:], port64)
		}
		tables := f.open(t, f.root(2, f.table("FACP", body)))
		if got, ok := tables.Timer(); got != c.want || ok != (c.want != Register{}) {
			t.Errorf("%+v: %+v, %v", c, got, ok)
		}
	}
}

func TestNextVirtioMMIO(t *testing.T) {
	want := []VirtioMMIO{
		{Address: 0xfe001000, Size: 512, GSI: 16},
		{Address: 0xfe001200, Size: 512, GSI: 17, Level: true},
	}
	at := 0
	for i, w := range want {
		d, next, ok := NextVirtioMMIO(dsdt, at)
		if !ok || d != w {
			t.Fatalf("device %d: got %+v, %v, want %+v", i, d, ok, w)
		}
		at = next
	}
	if d, _, ok := NextVirtioMMIO(dsdt, at); ok {
		t.Errorf("one device too many: %+v", d)
	}
}

func TestPackageBody(t *testing.T) {
	long := make([]byte, 0x123)
	long[0], long[1] = 1<<6|3, 0x12
	for _, test := range []struct {
		in   []byte
		want int // expected length of the body; -1: invalid
	}{
		{nil, -1},
		{[]byte{0}, -1},
		{[]byte{1}, 0},
		{[]byte{3, 1, 2, 9}, 2},
		{[]byte{4, 1, 2}, -1},
		{[]byte{0xc0, 0, 0}, -1},
		{[]byte{0xff, 0xff, 0xff, 0xff}, -1},
		{long, 0x121},
	} {
		got := packageBody(test.in)
		if (got == nil) != (test.want < 0) || len(got) != max(test.want, 0) {
			t.Errorf("%x: %d bytes, want %d", test.in, len(got), test.want)
		}
	}
}

// event is the AML of the event device of a QEMU microvm.
const event = "ACPI0013\x00\x08_UID\x0dGED\x00\x08_CRS\x11\x0e\x0a\x0b\x89\x06\x00\x03\x01\x09\x00\x00\x00\x79\x00" +
	"\x5b\x80EREG\x00\x0c\x00\x00\xa0\xfe\x0a\x04\x5b\x81\x0bEREGCESEL\x20\x14\x1d_EVT\x09pESEL\x60" +
	"\xa0\x10\x93\x7b\x60\x0a\x02\x00\x0a\x02\x86PWRB\x0a\x80"

// FindButton finds a button only if all its parts are there.
func TestFindButton(t *testing.T) {
	want := Button{Register: Register{0xfea00000, SpaceMemory}, Mask: 2, GSI: 9}
	if got, ok := FindButton([]byte(event)); !ok || got != want {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, part := range []string{"ACPI0013", "_CRS", "EREG", "PWRB", "\x93\x7b", "\x0a\x02\x86"} {
		if got, ok := FindButton([]byte(strings.Replace(event, part, strings.Repeat("x", len(part)), 1))); ok {
			t.Errorf("without %q: %+v", part, got)
		}
	}
}

// walkAML calls all functions that search a DSDT.
func walkAML(aml []byte) {
	SleepTypes(aml)
	FindButton(aml)
	for at, ok := 0, true; ok; {
		_, at, ok = NextVirtioMMIO(aml, at)
	}
}

func FuzzAML(f *testing.F) {
	f.Add(dsdt)
	f.Add([]byte(event))
	f.Fuzz(func(t *testing.T, aml []byte) { walkAML(aml) })
}
