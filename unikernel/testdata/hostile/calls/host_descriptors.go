package main

import (
	"syscall"

	"example.com/hostile/attack"
)

func init() { techniques["host-descriptors"] = tryHostDescriptors }

// tryHostDescriptors uses Loam's numbers for descriptors of the host, through package syscall.
func tryHostDescriptors() {
	b := make([]byte, 64)
	for fd := range 64 {
		const host = 1 << 24
		if _, err := syscall.Openat(host+fd, "mark", syscall.O_CREAT|syscall.O_WRONLY, 0o666); err == nil {
			println("a file of the host")
		}
		syscall.Sendto(host+fd, b, syscall.MSG_DONTWAIT, &syscall.SockaddrInet4{Port: attack.Port(), Addr: [4]byte{127, 0, 0, 1}})
		syscall.Connect(host+fd, &syscall.SockaddrInet4{Port: attack.Port(), Addr: [4]byte{127, 0, 0, 1}})
	}
}
