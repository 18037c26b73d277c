package virtio

import (
	"fmt"

	"loam/driver"
	"loam/driver/pci"
)

// Virtio over PCI (virtio 1.2 section 4.1).

// pciVendor is the vendor ID of all virtio devices. The device ID of a modern device is pciModern plus the type of
// device. A smaller device ID means that the device also supports the legacy interface; its type is then in the
// subsystem ID.
const (
	pciVendor = 0x1af4
	pciOldest = 0x1000
	pciModern = 0x1040
	pciNewest = 0x107f
)

// Types of the capabilities that locate registers (virtio 1.2 section 4.1.4).
const (
	capCommon = 1
	capNotify = 2
	capISR    = 3
	capDevice = 4
)

// Registers of the common configuration (virtio 1.2 section 4.1.4.3).
const (
	commonDeviceFeatureSelect = 0x00
	commonDeviceFeature       = 0x04
	commonDriverFeatureSelect = 0x08
	commonDriverFeature       = 0x0c
	commonConfigVector        = 0x10
	commonQueues              = 0x12
	commonStatus              = 0x14
	commonGeneration          = 0x15
	commonQueueSelect         = 0x16
	commonQueueSize           = 0x18
	commonQueueVector         = 0x1a
	commonQueueEnable         = 0x1c
	commonQueueNotifyOff      = 0x1e
	commonQueueDescriptors    = 0x20
	commonQueueAvail          = 0x28
	commonQueueUsed           = 0x30
	commonLen                 = 0x38
)

// pciTransport is a device on the PCI bus.
type pciTransport struct {
	f          *pci.Function
	deviceKind Kind
	common     driver.Registers
	notifies   driver.Registers
	isr        driver.Registers
	device     driver.Registers // nil: the device has no configuration
	multiplier int              // distance in bytes between the notify registers of two queues, as the device reports it
	notifyAt   []int            // offset of each queue's notify register in notify
	msix       *pci.MSIX        // nil: the device uses its interrupt line
}

// ProbePCI enables a PCI function and returns its virtio device. It returns ErrNotVirtio for other devices, and
// ErrLegacy for a legacy device.
func ProbePCI(m driver.Machine, f *pci.Function) (*Device, error) {
	if f.Vendor != pciVendor || f.Device < pciOldest || f.Device > pciNewest {
		return nil, fmt.Errorf("%v: %w", f, ErrNotVirtio)
	}
	t := &pciTransport{f: f, deviceKind: Kind(f.Device - pciModern)}
	if f.Device < pciModern {
		t.deviceKind = Kind(f.Subsystem)
	}
	f.Enable()
	if err := t.findRegisters(); err != nil {
		if f.Gone() {
			err = ErrGone
		}
		f.Disable()
		return nil, fmt.Errorf("%v: %w", f, err)
	}
	if x, err := f.MSIX(); err == nil {
		t.msix = x
	}
	return newDevice(m, t), nil
}

// findRegisters finds the four ranges of registers by the function's capabilities. If several capabilities have the
// same type, the first usable one is used (virtio 1.2 section 4.1.4.1).
func (t *pciTransport) findRegisters() error {
	any := false
	for _, c := range t.f.Capabilities() {
		if c.ID != pci.CapabilityVendor {
			continue
		}
		any = true
		head, bar := t.f.Read32(c.At), t.f.Read32(c.At+4)
		offset, length := t.f.Read32(c.At+8), t.f.Read32(c.At+12)
		const typed = 16 // size in bytes of a capability that locates registers
		if head>>16&0xff < typed {
			continue
		}
		t.window(head>>24, c.At, int(bar&0xff), uint64(offset), uint64(length))
	}
	switch {
	case !any:
		return ErrLegacy
	case t.common == nil || t.notifies == nil || t.isr == nil:
		return fmt.Errorf("%w: registers are missing", ErrLayout)
	}
	return nil
}

// mostConfig and mostNotify are the maximum sizes of registers that are mapped, in bytes. No type of device has a
// larger configuration. mostNotify is enough for the notify registers of all queues, each in a page of its own.
const (
	mostConfig = 4096
	mostNotify = 65536 * 4096
)

// window maps the registers that a capability describes, if the capability is valid and the first of its type.
func (t *pciTransport) window(kind uint32, at, bar int, offset, length uint64) {
	place := map[uint32]struct {
		to   *driver.Registers
		most uint64
		want uint64
	}{
		capCommon: {&t.common, commonLen, commonLen},
		capNotify: {&t.notifies, mostNotify, 2},
		capISR:    {&t.isr, 1, 1},
		capDevice: {&t.device, mostConfig, 1},
	}[kind]
	if place.to == nil || *place.to != nil || length < place.want || offset%4 != 0 {
		return
	}
	r, err := t.f.Registers(bar, offset, min(length, place.most))
	if err != nil {
		return
	}
	*place.to = r
	if kind == capNotify {
		t.multiplier = int(t.f.Read32(at + 16))
	}
}

func (t *pciTransport) name() string { return t.f.String() }
func (t *pciTransport) kind() Kind   { return t.deviceKind }

func (t *pciTransport) status() uint8     { return t.common.Read8(commonStatus) }
func (t *pciTransport) setStatus(v uint8) { t.common.Write8(commonStatus, v) }

func (t *pciTransport) features() Features {
	t.common.Write32(commonDeviceFeatureSelect, 0)
	low := t.common.Read32(commonDeviceFeature)
	t.common.Write32(commonDeviceFeatureSelect, 1)
	return Features(low) | Features(t.common.Read32(commonDeviceFeature))<<32
}

func (t *pciTransport) setFeatures(f Features) {
	t.common.Write32(commonDriverFeatureSelect, 0)
	t.common.Write32(commonDriverFeature, uint32(f))
	t.common.Write32(commonDriverFeatureSelect, 1)
	t.common.Write32(commonDriverFeature, uint32(f>>32))
}

func (t *pciTransport) config() driver.Registers { return t.device }
func (t *pciTransport) generation() uint32       { return uint32(t.common.Read8(commonGeneration)) }
func (t *pciTransport) queues() int              { return int(t.common.Read16(commonQueues)) }

func (t *pciTransport) maxQueue(i int) int {
	t.common.Write16(commonQueueSelect, uint16(i))
	return int(t.common.Read16(commonQueueSize))
}

// setQueue implements transport. It checks that the queue's notify register is in range.
func (t *pciTransport) setQueue(i int, q queueMemory) error {
	t.common.Write16(commonQueueSelect, uint16(i))
	at := int(t.common.Read16(commonQueueNotifyOff)) * t.multiplier
	if at < 0 || at%2 != 0 || at > t.notifies.Size()-2 {
		return fmt.Errorf("%w: queue %d is notified outside of the registers", ErrLayout, i)
	}
	for len(t.notifyAt) <= i {
		t.notifyAt = append(t.notifyAt, 0)
	}
	t.notifyAt[i] = at
	t.common.Write16(commonQueueSize, uint16(q.size))
	t.write64(commonQueueDescriptors, q.descriptors)
	t.write64(commonQueueAvail, q.avail)
	t.write64(commonQueueUsed, q.used)
	t.common.Write16(commonQueueEnable, 1)
	return nil
}

// write64 writes a 64-bit register in two halves (virtio 1.2 section 4.1.3.1).
func (t *pciTransport) write64(at int, v uint64) {
	t.common.Write32(at, uint32(v))
	t.common.Write32(at+4, uint32(v>>32))
}

func (t *pciTransport) notify(i int) { t.notifies.Write16(t.notifyAt[i], uint16(i)) }

func (t *pciTransport) vectors() int {
	if t.msix == nil {
		return 0
	}
	return t.msix.Len()
}

// setVector implements transport. It writes both the MSI-X table and the device's register for the vector.
func (t *pciTransport) setVector(i, vector int, m driver.Message) error {
	if err := t.msix.Set(vector, m); err != nil {
		return err
	}
	at := commonConfigVector
	if i >= 0 {
		t.common.Write16(commonQueueSelect, uint16(i))
		at = commonQueueVector
	}
	t.common.Write16(at, uint16(vector))
	if got := t.common.Read16(at); got != uint16(vector) {
		return fmt.Errorf("%w: it does not take interrupt vector %d", ErrLayout, vector)
	}
	return nil
}

func (t *pciTransport) line() (driver.Interrupt, error) {
	if t.msix != nil {
		t.msix.Close()
		t.msix = nil
	}
	return t.f.Line()
}

func (t *pciTransport) acknowledge() uint32 { return uint32(t.isr.Read8(0)) }

func (t *pciTransport) stop() bool {
	if t.msix != nil {
		t.msix.Close()
	}
	t.f.Disable()
	return true
}
