// Package tc sends and receives whole frames on any interface of Linux, using eBPF programs at the
// traffic-control hook of the kernel, behind the driver.
//
// Sending: the caller writes frames to memory shared with an eBPF program. One system call runs the
// program (BPF_PROG_TEST_RUN). For each frame, the program creates a kernel packet and sends it by
// the interface (bpf_clone_redirect). There is no system call per frame and no socket. The kernel
// also does the work that follows for dozens of frames at once, while its code is in the cache. If
// the other end of the interface is on the same machine, as with a veth, that work is most of the
// cost of a frame.
//
// Receiving: a program on the interface (tcx, Linux 6.6) takes the frames that match rules away
// from the kernel and copies them to a ring. It leaves all other frames alone. It inspects a frame
// in place. An XDP program in the driver of a veth, in contrast, forces a copy of every packet
// first.
//
// Neither changes the interface in any other way. The kernel removes both when the process ends,
// however that happens. Read tx.go and rx.go; the data structures shared with the kernel are in
// shared_unsafe.go.
package tc
