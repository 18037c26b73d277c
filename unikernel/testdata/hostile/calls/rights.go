package main

import (
	"syscall"
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["rights"] = tryRights }

// tryRights passes descriptors over all its sockets (SCM_RIGHTS), also to addresses of other programs, and receives
// such descriptors. It also duplicates descriptors of other processes.
func tryRights() {
	for _, way := range attack.Ways {
		for fd := uintptr(0); fd < 64; fd++ {
			data := []byte("x")
			control := syscall.UnixRights(0, 1, 2)
			name := append([]byte{1, 0, 0}, "loam-hostile"...) // AF_UNIX, abstract
			part := attack.Words(uintptr(unsafe.Pointer(&data[0])), 1)
			message := func(name []byte) uintptr {
				return attack.Words(uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), part, 1, uintptr(unsafe.Pointer(&control[0])), uintptr(len(control)), 0)
			}
			way(syscall.SYS_SENDMSG, fd, message(name), syscall.MSG_DONTWAIT, 0, 0, 0)
			way(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&data[0])), 1, syscall.MSG_DONTWAIT, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)))
			for i := range control {
				control[i] = 0
			}
			h := [7]uintptr{0, 0, part, 1, uintptr(unsafe.Pointer(&control[0])), uintptr(len(control))}
			if way(syscall.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&h)), syscall.MSG_DONTWAIT, 0, 0, 0) >= 0 && h[5] > 0 {
				println("a descriptor of another process")
			}
			if way(438, fd, 0, 0, 0, 0, 0) >= 0 { // pidfd_getfd
				println("a descriptor of another process")
			}
		}
		for target := range uintptr(4) {
			if way(312, attack.Victim(), 1, target, 0, 0, 0) >= 0 { // kcmp
				println("descriptors of another process")
			}
		}
	}
}
