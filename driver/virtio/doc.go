// Package virtio speaks to virtio devices: Virtual I/O Device (VIRTIO) Version 1.2,
// whose sections are cited everywhere here. Devices that only know the interface
// before version 1.0 ("legacy") are refused.
//
// Read in this order: ring.go (the split virtqueue, which is pure), queue.go (one
// with its device), device.go (the life of a device), transport.go, pci.go and
// mmio.go (where its registers are), interrupt.go (who is woken).
//
// A driver probes a device, negotiates features, sets up queues, and starts:
//
//	d, err := virtio.ProbePCI(machine, function)
//	err = d.Negotiate(need, want)
//	queues, err := d.SetUp(virtio.QueueSpec{Size: 256})
//	err = d.Start()
//
// What a device writes is not believed. A ring checks every completion against
// what it has asked for; the first that makes no sense is ErrNonsense, and the ring
// is over: who cannot count cannot be trusted with memory. What a device must do by
// itself (reset, answer a request) is waited for with a bound.
package virtio

import "errors"

// Errors. They are wrapped with the device that they are about.
var (
	ErrNotVirtio = errors.New("virtio: not a virtio device")
	ErrGone      = errors.New("virtio: the device does not answer any more")
	ErrLegacy    = errors.New("virtio: the device knows only the interface before virtio 1.0, which Loam does not speak (QEMU: disable-legacy=on, or -global virtio-mmio.force-legacy=false)")
	ErrFeatures  = errors.New("virtio: the device lacks a feature that the driver needs, or does not accept its choice")
	ErrLayout    = errors.New("virtio: the device describes its registers in a way that makes no sense")
	ErrQueue     = errors.New("virtio: the device lacks a queue that the driver needs")
	ErrReset     = errors.New("virtio: the device does not reset")
	ErrNonsense  = errors.New("virtio: the device completed what it was not asked for")
	ErrBroken    = errors.New("virtio: the device says that it needs to be reset")
	ErrTimeout   = errors.New("virtio: the device does not answer")
	ErrClosed    = errors.New("virtio: the device is closed")
)
