// Package virtio implements the driver's side of virtio devices: Virtual I/O Device (VIRTIO) Version 1.2, to which
// all section numbers refer. Devices that support only the interface before version 1.0 ("legacy") are rejected.
//
// Reading order: ring.go (the split virtqueue, without I/O), queue.go (a ring and its device), device.go (the life
// cycle of a device), transport.go, pci.go and mmio.go (registers), interrupt.go.
//
// A driver probes a device, negotiates features, sets up queues, and starts it:
//
//	d, err := virtio.ProbePCI(machine, function)
//	err = d.Negotiate(need, want)
//	queues, err := d.SetUp(virtio.QueueSpec{Size: 256})
//	err = d.Start()
//
// Devices are not trusted. A ring checks every completion of a request against its list of outstanding requests. At the
// first invalid completion it returns ErrNonsense and disables itself, because a device with such an error cannot be
// trusted to write only to the memory it was given. Every wait for a device (a reset, a response) has a timeout.
package virtio

import "errors"

// Errors, wrapped with the name of the device.
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
