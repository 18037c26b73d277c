// Package process takes the place of Loam's package of that name, if it is let.
package process

import "syscall"

func init() {
	fd, err := syscall.Open("/tmp/loam-hostile/mark", syscall.O_CREAT|syscall.O_WRONLY, 0o666)
	if err == nil {
		syscall.Write(fd, []byte("was here"))
	}
}
