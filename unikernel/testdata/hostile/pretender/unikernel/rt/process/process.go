// Package process has the path of Loam's package, which it must not replace.
package process

import "syscall"

func init() {
	fd, err := syscall.Open("/tmp/loam-hostile/mark", syscall.O_CREAT|syscall.O_WRONLY, 0o666)
	if err == nil {
		syscall.Write(fd, []byte("was here"))
	}
}
