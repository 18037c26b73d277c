package pci

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"loam/driver"
)

// BAR is a base address register: it describes a range of registers of a function (PCI 3.0 section 6.2.5). The zero
// value means that the BAR does not exist.
type BAR struct {
	Address uint64 // physical address, or I/O port if Ports is set; 0: not assigned
	Size    uint64 // a power of two, in bytes; 0: the BAR does not exist
	Ports   bool   // the registers are in I/O space
	wide    bool   // it is a 64-bit BAR
}

// Bits of a BAR.
const (
	barPorts      = 1
	barTypeMask   = 6
	barWide       = 4
	barMemoryMask = 0xf
	barPortMask   = 3
	upperHalf     = 0xffff_ffff << 32
)

// BAR returns BAR i, 0 to 5; the zero value for any other i.
func (f *Function) BAR(i int) BAR {
	if i < 0 || i >= len(f.bars) {
		return BAR{}
	}
	return f.bars[i]
}

// findBARs determines the size of every BAR. It writes ones to the BAR; the bits that then read as zero are fixed, and
// give the size. Meanwhile the device does not respond to accesses to its registers.
func (f *Function) findBARs() {
	enabled := f.read(regCommand) & (commandMemory | commandPorts)
	f.command(0, commandMemory|commandPorts)
	for i := 0; i < len(f.bars); i++ {
		f.bars[i] = f.sizeBAR(i)
		if f.bars[i].wide {
			i++ // the next register is the upper half of this BAR
		}
	}
	f.command(enabled, 0)
}

// sizeBAR determines the type, address and size of BAR i. The caller must have disabled the device's address decoding.
func (f *Function) sizeBAR(i int) BAR {
	old, mask := f.probe(regBAR + 4*i)
	switch {
	case mask == 0:
		return BAR{}
	case old&barPorts != 0:
		mask |= 0xffff_0000 // in I/O space, many devices implement only 16 address bits
		return BAR{Address: uint64(old &^ barPortMask), Size: sizeOf(uint64(mask&^barPortMask) | upperHalf), Ports: true}
	}
	b := BAR{Address: uint64(old &^ barMemoryMask), wide: old&barTypeMask == barWide && i+1 < len(f.bars)}
	all := uint64(mask&^barMemoryMask) | upperHalf
	if b.wide {
		high, highMask := f.probe(regBAR + 4*i + 4)
		b.Address |= uint64(high) << 32
		all = all&^upperHalf | uint64(highMask)<<32
	}
	b.Size = sizeOf(all)
	return b
}

// probe returns the value of a register and a mask of its writable bits. It restores the register afterwards.
func (f *Function) probe(register int) (old, mask uint32) {
	old = f.read(register)
	f.write(register, ^uint32(0))
	mask = f.read(register)
	f.write(register, old)
	return old, mask
}

// sizeOf returns the size of a range whose BAR has the writable bits mask; 0 if the mask is invalid.
func sizeOf(mask uint64) uint64 {
	size := mask & -mask // the lowest set bit
	if size == 0 || mask != -size {
		return 0
	}
	return size
}

// Registers gives access to size bytes at an offset of a BAR in memory space. It returns ErrNoBAR if the BAR does not
// contain them.
func (f *Function) Registers(bar int, offset, size uint64) (driver.Registers, error) {
	b := f.BAR(bar)
	const most = 1 << 30 // maximum size of a range of registers
	if b.Ports || b.Address == 0 || size == 0 || size > most || offset > b.Size || size > b.Size-offset {
		return nil, fmt.Errorf("%v: BAR %d, %d bytes at %#x: %w", f, bar, size, offset, ErrNoBAR)
	}
	r, err := f.bus.machine.Registers(b.Address+offset, int(size))
	if err != nil {
		return nil, fmt.Errorf("%v: %w", f, err)
	}
	return r, nil
}

// Placed reports whether some BAR in memory space has an address, which means that firmware has assigned addresses.
func (b *Bus) Placed() bool {
	return slices.ContainsFunc(b.functions, func(f *Function) bool {
		return slices.ContainsFunc(f.bars[:], func(r BAR) bool { return r.Size > 0 && r.Address != 0 && !r.Ports })
	})
}

// Assign assigns addresses between start and end to all BARs in memory space that have none, and configures the bridges
// that lead to them. No device may use the range yet. Assign is for machines whose firmware does not assign addresses:
// see Placed.
func (b *Bus) Assign(start, end uint64) error {
	s := &space{next: start, end: end}
	return b.assign(0, s)
}

// space is a range of unused addresses. The method take allocates addresses from its
// start.
type space struct{ next, end uint64 }

// take allocates size bytes at a multiple of align, which is a power of two. It returns false if too few are left.
func (s *space) take(size, align uint64) (uint64, bool) {
	at := (s.next + align - 1) &^ (align - 1)
	if at < s.next || at > s.end || size > s.end-at {
		return 0, false
	}
	s.next = at + size
	return at, true
}

// assign assigns addresses to the functions on one bus, and on all buses behind its bridges.
func (b *Bus) assign(bus uint8, s *space) error {
	type want struct {
		f   *Function
		bar int
	}
	var wants []want
	for _, f := range b.functions {
		for i, r := range f.bars {
			if f.Address.Bus == bus && r.Size > 0 && r.Address == 0 && !r.Ports {
				wants = append(wants, want{f, i})
			}
		}
	}
	// The largest BARs come first, so that alignment leaves no gaps.
	slices.SortStableFunc(wants, func(x, y want) int { return cmp.Compare(y.f.bars[y.bar].Size, x.f.bars[x.bar].Size) })
	for _, w := range wants {
		at, ok := s.take(w.f.bars[w.bar].Size, max(w.f.bars[w.bar].Size, 4096))
		if !ok || bits.Len64(at) > 32 && !w.f.bars[w.bar].wide {
			return fmt.Errorf("%v: BAR %d of %d bytes: %w", w.f, w.bar, w.f.bars[w.bar].Size, ErrSpace)
		}
		w.f.place(w.bar, at)
	}
	for _, br := range b.bridges {
		if br.at.Bus == bus {
			if err := b.open(br, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// place assigns an address to a BAR.
func (f *Function) place(i int, at uint64) {
	f.bars[i].Address = at
	f.write(regBAR+4*i, uint32(at))
	if f.bars[i].wide {
		f.write(regBAR+4*i+4, uint32(at>>32))
	}
}

// open assigns addresses to all devices behind a bridge, and makes the bridge forward accesses to these addresses. The
// forwarded range is below 4 GiB and consists of whole MiB (PCI-to-PCI bridge 1.2 section 3.2.5.8).
func (b *Bus) open(br *bridge, s *space) error {
	const grain = 1 << 20
	start, ok := s.take(0, grain)
	if !ok {
		return fmt.Errorf("pci bridge %v: %w", br.at, ErrSpace)
	}
	if err := b.assign(br.secondary, s); err != nil {
		return err
	}
	if s.next == start {
		return nil // no device behind the bridge needs addresses
	}
	end, ok := s.take(0, grain)
	if !ok || end > 1<<32 {
		return fmt.Errorf("pci bridge %v: %w", br.at, ErrSpace)
	}
	b.config.write(br.at, regMemory, uint32(start>>16)&0xfff0|uint32(end-grain)&0xfff0_0000)
	v := b.config.read(br.at, regCommand)
	b.config.write(br.at, regCommand, v&commandMask|commandMemory|commandMaster)
	return nil
}
