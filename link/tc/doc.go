// Package tc sends and receives whole frames on any interface of Linux by programs of
// eBPF at the place where the kernel has its traffic control, behind the driver.
//
// Sending: frames are written to memory that is shared with a program. One system call
// runs it (BPF_PROG_TEST_RUN); it makes a packet of the kernel of each frame and sends
// it by the interface (bpf_clone_redirect). A call of the kernel for each frame, or a
// socket, is not in between; and the kernel does the work that follows for dozens of
// frames at once, while its code is in the cache: where the other end of the interface is
// on the same machine, as that of a veth is, this is most of what a frame costs.
//
// Receiving: a program on the interface (tcx, Linux 6.6) takes the frames that agree with
// rules away from the kernel, and copies them to a ring. All others it leaves alone. The
// frame is looked at where it lies: an XDP program in the driver of a veth has every
// packet of the other end copied first.
//
// Neither changes the interface in another way, and both are gone when the process is,
// by whatever death. Read tx.go and rx.go; what is shared with the kernel is in
// shared_unsafe.go.
package tc
