package pci

import (
	"encoding/binary"
	"errors"
	"testing"

	"loam/driver"
)

// fake is a machine with one PCI function, whose configuration space is an array. A bit
// of the array space is read-only if the same bit of the array fixed is set.
type fake struct {
	driver.Machine // nil: the code under test calls only the methods that fake itself defines
	address        uint32
	space, fixed   [64]uint32
}

func newFake() *fake {
	f := &fake{}
	f.space[0] = 0x1044_1af4
	for i := range f.fixed {
		if i*4 != regCommand {
			f.fixed[i] = ^uint32(0)
		}
	}
	return f
}

func (f *fake) Out32(port uint16, v uint32) {
	switch {
	case port == configAddress:
		f.address = v
	case f.address>>8 == configEnable>>8:
		i := f.address / 4 % 64
		f.space[i] = f.space[i]&f.fixed[i] | v&^f.fixed[i]
	}
}

func (f *fake) In32(uint16) uint32 {
	if f.address>>8 != configEnable>>8 {
		return ^uint32(0)
	}
	return f.space[f.address/4%64]
}

func (f *fake) Registers(address uint64, size int) (driver.Registers, error) {
	return nil, errors.New("nothing is there")
}

func (f *fake) Line(uint32, driver.Trigger) (driver.Interrupt, error) {
	return nil, errors.New("there are no interrupts")
}

func scanFake(t *testing.T, f *fake) *Function {
	t.Helper()
	bus, err := Scan(f, nil)
	if err != nil || len(bus.Functions()) != 1 {
		t.Fatalf("Scan found %v, %v", bus.Functions(), err)
	}
	return bus.Functions()[0]
}

// The size of a BAR follows from its writable bits; a mask with gaps is not a valid BAR.
func TestBARs(t *testing.T) {
	f := newFake()
	f.fixed[regBAR/4] = 0x3ff // 1 KiB, 32-bit address
	f.space[regBAR/4] = 0xfe00_0000
	f.fixed[regBAR/4+1] = 0xffff_003f // 64 ports, 16-bit address
	f.space[regBAR/4+1] = 0x41
	f.fixed[regBAR/4+2], f.space[regBAR/4+2] = 0x3fff, 0x400c // 16 KiB, 64-bit address
	f.fixed[regBAR/4+3] = 0
	f.fixed[regBAR/4+4] = 0x0ff0_000f // a mask with gaps
	fn := scanFake(t, f)
	for i, want := range []BAR{
		{Address: 0xfe00_0000, Size: 1 << 10},
		{Address: 0x40, Size: 64, Ports: true},
		{Address: 0x4000, Size: 16 << 10, wide: true},
		{}, {}, {},
	} {
		if got := fn.BAR(i); got != want {
			t.Errorf("BAR %d: got %+v, want %+v", i, got, want)
		}
	}
	for _, test := range []struct {
		bar          int
		offset, size uint64
	}{{0, 0, 0}, {0, 1 << 10, 1}, {0, ^uint64(0), 2}, {0, 1, 1 << 10}, {1, 0, 4}, {3, 0, 4}, {6, 0, 4}, {-1, 0, 4}} {
		if _, err := fn.Registers(test.bar, test.offset, test.size); !errors.Is(err, ErrNoBAR) {
			t.Errorf("Registers(%+v): %v, want ErrNoBAR", test, err)
		}
	}
}

// Reading a list of capabilities ends even if the list contains a cycle or points into the header.
func TestCapabilities(t *testing.T) {
	for name, test := range map[string]struct {
		first uint32
		list  map[int]uint32
		want  int
	}{
		"two":         {0x40, map[int]uint32{0x40: 0x5009, 0x50: 0x0011}, 2},
		"circle":      {0x40, map[int]uint32{0x40: 0x5009, 0x50: 0x4011}, 2},
		"itself":      {0xfc, map[int]uint32{0xfc: 0xfc09}, 1},
		"into header": {0x40, map[int]uint32{0x40: 0x1009}, 1},
		"gone":        {0x40, map[int]uint32{0x40: 0x5009, 0x50: ^uint32(0)}, 1},
		"none":        {0, nil, 0},
	} {
		f := newFake()
		f.space[regCommand/4] = statusCapabilities
		f.fixed[regCommand/4] = ^uint32(0)
		f.space[regCapability/4] = test.first
		for at, v := range test.list {
			f.space[at/4] = v
		}
		if got := scanFake(t, f).Capabilities(); len(got) != test.want {
			t.Errorf("%s: %v, want %d", name, got, test.want)
		}
	}
}

func TestNoLine(t *testing.T) {
	f := newFake()
	// a function without a pin; a pin that is not routed; a line number without a pin
	for _, v := range []uint32{0, 0x1ff, 0x0b} {
		f.space[regInterrupt/4] = v
		if _, err := scanFake(t, f).Line(); err == nil {
			t.Errorf("register %#x: a line is found", v)
		}
	}
}

// liar is a machine whose reads return the words of an input, cyclically.
type liar struct {
	fake
	words []byte
	at    int
}

func (l *liar) In32(uint16) uint32 {
	v := binary.LittleEndian.Uint32(l.words[l.at:])
	if l.at += 4; l.at+4 > len(l.words) {
		l.at = 0
	}
	return v
}

// With arbitrary reads, a scan and all operations on its result terminate.
func FuzzScan(f *testing.F) {
	f.Add([]byte{0xf4, 0x1a, 0x44, 0x10, 0, 0, 0x81, 0})
	f.Add([]byte{0xf4, 0x1a, 0x44, 0x10, 0, 0, 0x01, 0, 0, 2, 0, 0})
	f.Add([]byte{0, 0, 0x80, 0, 0xff, 0xff, 0, 0})
	f.Fuzz(func(t *testing.T, words []byte) {
		if len(words) < 4 {
			return
		}
		l := &liar{words: words}
		bus, err := Scan(l, nil)
		if err != nil {
			t.Fatal(err)
		}
		bus.Assign(0xe000_0000, 0xe100_0000)
		for _, fn := range bus.Functions()[:min(8, len(bus.Functions()))] {
			fn.Capabilities()
			fn.MSIX()
			fn.Line()
			fn.Enable()
			fn.Disable()
		}
	})
}
