package main

import (
	"unsafe"

	"example.com/hostile/attack"
)

func init() { techniques["unixsocket"] = tryUnixsocket }

// tryUnixsocket sends to the host's Unix sockets, by path and by abstract name.
func tryUnixsocket() {
	for _, name := range []string{"/dev/log", "/run/systemd/journal/socket", "/var/run/docker.sock", "\x00loam-hostile"} {
		address := append([]byte{1, 0}, name...)
		for _, way := range attack.Ways {
			for _, kind := range []uintptr{1, 2, 5} {
				fd := uintptr(way(41, 1, kind, 0, 0, 0, 0))
				if way(42, fd, uintptr(unsafe.Pointer(&address[0])), uintptr(len(address)), 0, 0, 0) == 0 && name[0] == 0 {
					way(1, fd, attack.String("was here"), 8, 0, 0, 0)
				}
			}
		}
	}
}
