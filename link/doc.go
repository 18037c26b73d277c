// Package link is the edge of the stack: devices that carry batches of frames.
//
// Read in this order: device.go (what a device guarantees), frame.go (who owns a buffer, and the
// offload metadata of a frame), offload.go (the virtio-net header).
//
// A device is a set of queues. A queue has two directions. Recv blocks until at least one frame has
// arrived. Send never blocks: it takes as many frames as there is room for, and the device signals
// Room when there is room again, so the owner of a queue can do other work meanwhile. Inside one
// process, no frame is dropped because a queue is full. Only the receiving edge of a device may
// drop frames, and it counts them.
//
// Each device has a folder of its own: pipe, loop, tap, unixsock, afpacket, afxdp and others.
// offload, trace, fault and shape wrap another device. Each passes linktest. README.md lists all of
// them.
package link
