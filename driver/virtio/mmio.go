package virtio

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"loam/driver"
)

// Virtio over MMIO (virtio 1.2 section 4.2), which is version 2 of the register layout.

// MMIO is the location of a device with memory-mapped registers, from firmware (acpi.VirtioMMIO) or the command
// line.
type MMIO struct {
	Address uint64
	Size    int // size of the registers in bytes
	GSI     uint32
	Trigger driver.Trigger
}

// Registers (virtio 1.2 section 4.2.2).
const (
	mmioMagic             = 0x000
	mmioVersion           = 0x004
	mmioKind              = 0x008
	mmioDeviceFeatures    = 0x010
	mmioDeviceFeaturesSel = 0x014
	mmioDriverFeatures    = 0x020
	mmioDriverFeaturesSel = 0x024
	mmioQueueSel          = 0x030
	mmioQueueNumMax       = 0x034
	mmioQueueNum          = 0x038
	mmioQueueReady        = 0x044
	mmioQueueNotify       = 0x050
	mmioInterruptStatus   = 0x060
	mmioInterruptACK      = 0x064
	mmioStatus            = 0x070
	mmioDescriptors       = 0x080
	mmioAvail             = 0x090
	mmioUsed              = 0x0a0
	mmioGeneration        = 0x0fc
	mmioConfig            = 0x100

	magic = 0x74726976 // "virt"

	mostMMIO = 1 << 20 // maximum size of the registers in bytes; no device needs as much
)

// mmioTransport is a device over MMIO.
type mmioTransport struct {
	machine    driver.Machine
	where      MMIO
	registers  driver.Registers
	device     driver.Registers
	deviceKind Kind
}

// ProbeMMIO returns the device at a location. It returns ErrNotVirtio if there is no virtio device or only an empty
// slot (device ID 0), and ErrLegacy for a legacy device.
func ProbeMMIO(m driver.Machine, where MMIO) (*Device, error) {
	t := &mmioTransport{machine: m, where: where}
	if where.Size < mmioConfig {
		return nil, fmt.Errorf("%s: %w: %d bytes of registers", t.name(), ErrLayout, where.Size)
	}
	var err error
	if t.registers, err = m.Registers(where.Address, where.Size); err != nil {
		return nil, fmt.Errorf("%s: %w", t.name(), err)
	}
	version, kind := t.registers.Read32(mmioVersion), t.registers.Read32(mmioKind)
	switch {
	case t.registers.Read32(mmioMagic) != magic || kind == 0 || kind > 0xffff:
		return nil, fmt.Errorf("%s: %w", t.name(), ErrNotVirtio)
	case version == 1:
		return nil, fmt.Errorf("%s: %w", t.name(), ErrLegacy)
	case version != 2:
		return nil, fmt.Errorf("%s: %w: version %d", t.name(), ErrLayout, version)
	}
	t.deviceKind = Kind(kind)
	if where.Size > mmioConfig {
		if t.device, err = m.Registers(where.Address+mmioConfig, where.Size-mmioConfig); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name(), err)
		}
	}
	return newDevice(m, t), nil
}

func (t *mmioTransport) name() string { return fmt.Sprintf("virtio-mmio at %#x", t.where.Address) }
func (t *mmioTransport) kind() Kind   { return t.deviceKind }

func (t *mmioTransport) status() uint8     { return uint8(t.registers.Read32(mmioStatus)) }
func (t *mmioTransport) setStatus(v uint8) { t.registers.Write32(mmioStatus, uint32(v)) }

func (t *mmioTransport) features() Features {
	t.registers.Write32(mmioDeviceFeaturesSel, 0)
	low := t.registers.Read32(mmioDeviceFeatures)
	t.registers.Write32(mmioDeviceFeaturesSel, 1)
	return Features(low) | Features(t.registers.Read32(mmioDeviceFeatures))<<32
}

func (t *mmioTransport) setFeatures(f Features) {
	t.registers.Write32(mmioDriverFeaturesSel, 0)
	t.registers.Write32(mmioDriverFeatures, uint32(f))
	t.registers.Write32(mmioDriverFeaturesSel, 1)
	t.registers.Write32(mmioDriverFeatures, uint32(f>>32))
}

func (t *mmioTransport) config() driver.Registers { return t.device }
func (t *mmioTransport) generation() uint32       { return t.registers.Read32(mmioGeneration) }

// queues returns the maximum that virtio allows, since the registers do not contain the number of queues. maxQueue
// reports whether a queue exists.
func (t *mmioTransport) queues() int { return 1 << 16 }

func (t *mmioTransport) maxQueue(i int) int {
	t.registers.Write32(mmioQueueSel, uint32(i))
	return int(min(t.registers.Read32(mmioQueueNumMax), 1<<16))
}

func (t *mmioTransport) setQueue(i int, q queueMemory) error {
	t.registers.Write32(mmioQueueSel, uint32(i))
	if t.registers.Read32(mmioQueueReady) != 0 {
		return fmt.Errorf("%w: queue %d is in use after a reset", ErrLayout, i)
	}
	t.registers.Write32(mmioQueueNum, uint32(q.size))
	t.write64(mmioDescriptors, q.descriptors)
	t.write64(mmioAvail, q.avail)
	t.write64(mmioUsed, q.used)
	t.registers.Write32(mmioQueueReady, 1)
	return nil
}

func (t *mmioTransport) write64(at int, v uint64) {
	t.registers.Write32(at, uint32(v))
	t.registers.Write32(at+4, uint32(v>>32))
}

func (t *mmioTransport) notify(i int) { t.registers.Write32(mmioQueueNotify, uint32(i)) }

func (t *mmioTransport) vectors() int { return 0 }

func (t *mmioTransport) setVector(int, int, driver.Message) error { return ErrLayout }

func (t *mmioTransport) line() (driver.Interrupt, error) {
	return t.machine.Line(t.where.GSI, t.where.Trigger)
}

func (t *mmioTransport) acknowledge() uint32 {
	v := t.registers.Read32(mmioInterruptStatus)
	t.registers.Write32(mmioInterruptACK, v)
	return v
}

// stop returns false: MMIO devices are not on a bus that could block their accesses to memory.
func (t *mmioTransport) stop() bool { return false }

// ParseCommandLine returns the devices that a kernel command line lists. Without ACPI, QEMU's microvm and Firecracker
// describe their devices there, in the form of virtio 1.2 section 4.2.2.3.1:
// virtio_mmio.device=<size>@<address>:<interrupt>[:<id>]. All other words are ignored.
func ParseCommandLine(text string) []MMIO {
	var devices []MMIO
	for word := range strings.FieldsSeq(text) {
		if value, ok := strings.CutPrefix(word, "virtio_mmio.device="); ok {
			if d, ok := parseMMIO(value); ok {
				devices = append(devices, d)
			}
		}
	}
	return devices
}

// parseMMIO parses the value of one virtio_mmio.device argument.
func parseMMIO(text string) (d MMIO, ok bool) {
	size, rest, ok := strings.Cut(text, "@")
	if !ok {
		return d, false
	}
	address, rest, ok := strings.Cut(rest, ":")
	if !ok {
		return d, false
	}
	line, _, _ := strings.Cut(rest, ":")
	n, err := parseSize(size)
	if err != nil || n == 0 || n > mostMMIO {
		return d, false
	}
	at, err := strconv.ParseUint(address, 0, 52)
	if err != nil || at%4 != 0 {
		return d, false
	}
	gsi, err := strconv.ParseUint(line, 0, 16)
	if err != nil {
		return d, false
	}
	return MMIO{Address: at, Size: int(n), GSI: uint32(gsi), Trigger: driver.EdgeHigh}, true
}

// parseSize parses a number with an optional suffix K, M or G.
func parseSize(text string) (uint64, error) {
	shift := 0
	if n := len(text); n > 0 {
		shift = 10 * (strings.IndexByte("KMG", text[n-1]&^0x20) + 1)
		if shift > 0 {
			text = text[:n-1]
		}
	}
	v, err := strconv.ParseUint(text, 0, 52)
	if err == nil && bits.Len64(v)+shift > 52 {
		err = strconv.ErrRange
	}
	return v << shift, err
}
