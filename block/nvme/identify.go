package nvme

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// identify reads the descriptions of the controller and its first namespace.
func (d *disk) identify() error {
	b, err := d.machine.Allocate(identifyLen, pageSize)
	if err != nil {
		return err
	}
	d.lists = append(d.lists, b) // freed only with the other lists, because the controller may still write to it
	ask := func(what, namespace uint32) {
		if err == nil {
			_, err = d.ask(command{opcode: adminIdentify, namespace: namespace, prp1: b.Address, dwords: [3]uint32{what}})
		}
	}
	ask(identifyController, 0)
	c := parseController(b.Bytes)
	ask(identifyNamespaces, 0)
	d.namespace = binary.LittleEndian.Uint32(b.Bytes)
	if err == nil && (d.namespace == 0 || d.namespace >= 0xffff_fffe) {
		return ErrNamespace
	}
	ask(identifyNamespace, d.namespace)
	if err != nil {
		return err
	}
	n, err := parseNamespace(b.Bytes)
	if err == nil {
		d.describe(c, n)
	}
	return err
}

// controllerData holds the fields of Identify Controller that the driver uses.
type controllerData struct {
	maxTransfer int // maximum bytes of a transfer; 0: no limit
	cache       bool
	dataset     bool
	zeroes      bool
}

// parseController decodes the 4096 bytes of Identify Controller.
func parseController(b []byte) (c controllerData) {
	if exponent := b[atMaxTransfer]; exponent > 0 && exponent < 16 {
		c.maxTransfer = pageSize << exponent
	}
	optional := binary.LittleEndian.Uint16(b[atOptional:])
	c.cache = b[atCache]&1 != 0
	c.dataset, c.zeroes = optional&optionalDataset != 0, optional&optionalZeroes != 0
	return c
}

// namespaceData holds the fields of Identify Namespace that the driver uses.
type namespaceData struct {
	size     int64 // size of the namespace in bytes
	logical  int   // size of a block in bytes
	physical int
}

// parseNamespace decodes the 4096 bytes of Identify Namespace.
func parseNamespace(b []byte) (n namespaceData, err error) {
	le := binary.LittleEndian
	format := b[atFormat] & 15
	lba := le.Uint32(b[atLBA+4*int(format):])
	metadata, exponent := lba&0xffff, lba>>16&0xff
	blocks := le.Uint64(b[atSize:])
	const minExponent, maxExponent, most = 9, 12, 1 << 62
	if format > b[atFormats] || metadata != 0 || exponent < minExponent || exponent > maxExponent || blocks > most>>exponent || blocks == 0 {
		return n, fmt.Errorf("%w: %d blocks of format %d: %#x", ErrNamespace, blocks, format, lba)
	}
	n.logical = 1 << exponent
	n.size, n.physical = int64(blocks)<<exponent, n.logical
	if b[atFeatures]&featuresOptimal != 0 {
		grain := (int(le.Uint16(b[atWrite:])) + 1) * n.logical
		const mostGrain = 1 << 20
		if bits.OnesCount(uint(grain)) == 1 && grain <= mostGrain {
			n.physical = grain
		}
	}
	return n, nil
}

// describe fills in the disk's block.Info.
func (d *disk) describe(c controllerData, n namespaceData) {
	const mostBlocks = 1 << 16 // most blocks of a command that transfers no data: its field NLB has 16 bits
	i := &d.info
	i.LogicalSector, i.PhysicalSector, i.MaxTransfer = n.logical, n.physical, mostBytes
	if c.maxTransfer > 0 {
		i.MaxTransfer = min(mostBytes, c.maxTransfer)
	}
	if c.zeroes {
		// On older controllers, the limit of transfers applies to Write Zeroes too (ECN 005).
		i.MaxZeroes = int64(mostBlocks * n.logical)
		if c.maxTransfer > 0 {
			i.MaxZeroes = min(i.MaxZeroes, int64(c.maxTransfer))
		}
	}
	if c.dataset {
		i.MaxDiscard = 1 << 30
	}
	i.MaxSegments, i.MemoryAlign, i.Timeout = mostData, pageSize, answerBound
	i.Volatile, i.FUA = c.cache, true
	d.size = n.size
}
