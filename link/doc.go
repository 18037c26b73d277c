// Package link is the edge of the stack: devices that carry batches of frames.
//
// Read in this order: device.go (what a device promises), frame.go (who owns a
// buffer, and what rides with it), offload.go (the virtio-net header).
//
// A device is a set of queues, each a pair of directions. Recv blocks until
// there is something, Send never blocks: it takes what there is room for and
// rings Room when there is room again, so that the owner of a queue can go on
// with other work. Nothing is dropped for want of room inside one process; only
// the receiving edge of a device may drop, and it counts.
//
// The devices are in folders of their own: pipe, loop, tap, unixsock, afpacket,
// afxdp; offload, trace, fault and shape wrap another device. Each passes
// linktest. README.md lists them all.
package link
