package ahci

import (
	"encoding/binary"
	"fmt"

	"loam/block"
)

// identity holds the fields of IDENTIFY DEVICE that the driver uses (ACS-3 section 7.12.7).
type identity struct {
	size     int64 // size of the disk in bytes
	logical  int   // size of a logical sector in bytes
	physical int
	depth    int // number of commands in the disk's queue; 0: the disk has no queue
	cache    bool
	fua      bool
	trim     bool
}

// parseIdentity decodes the 512 bytes that IDENTIFY DEVICE returns.
func parseIdentity(b []byte) (d identity, err error) {
	word := func(i int) uint16 { return binary.LittleEndian.Uint16(b[2*i:]) }
	valid := func(v uint16) bool { return v>>14 == 1 } // a word is valid if bits 15:14 are 01
	const packet, wide = 1 << 15, 1 << 10
	if word(0)&packet != 0 || !valid(word(83)) || word(83)&wide == 0 {
		return d, fmt.Errorf("%w: it is no disk with addresses of 48 bits", ErrNotDisk)
	}
	d.logical, d.physical = 512, 512
	if v := word(106); valid(v) {
		const large, several = 1 << 12, 1 << 13
		if v&large != 0 {
			d.logical = 2 * int(uint32(word(117))|uint32(word(118))<<16)
		}
		d.physical = d.logical
		if v&several != 0 {
			d.physical <<= v & 15
		}
	}
	sectors := binary.LittleEndian.Uint64(b[200:])
	const mostSectors, mostPhysical = 1 << 48, 1 << 20
	if d.logical < 512 || d.logical > block.MinTransfer || d.logical&(d.logical-1) != 0 || d.physical > mostPhysical || sectors == 0 || sectors > mostSectors {
		return d, fmt.Errorf("%w: %d sectors of %d bytes, %d together", ErrNotDisk, sectors, d.logical, d.physical)
	}
	d.size = int64(sectors) * int64(d.logical)
	if word(76)&(1<<8) != 0 && word(76) != 0xffff {
		d.depth = int(word(75)&31) + 1
	}
	// A disk that does not report whether it has a write cache is assumed to have one.
	d.cache = !valid(word(83)) || word(82)&(1<<5) == 0 || word(85)&(1<<5) != 0
	d.fua = valid(word(84)) && word(84)&(1<<6) != 0
	d.trim = word(169)&1 != 0 && word(169) != 0xffff
	return d, nil
}

// describe fills in the disk's block.Info.
func (p *port) describe(d identity) {
	i := &p.info
	i.LogicalSector, i.PhysicalSector, i.MaxTransfer, i.MaxSegments = d.logical, d.physical, mostBytes, mostData
	i.MemoryAlign, i.Volatile, i.FUA, i.Timeout = 2, d.cache, d.fua && d.depth > 0, answerBound
	i.Depth = 1
	p.queues = p.queues && d.depth > 0
	if p.queues {
		i.Depth = min(p.hba.slots, d.depth)
	}
	if d.trim && d.logical == 512 {
		i.MaxDiscard = 1 << 30
	}
	p.size = d.size
}
