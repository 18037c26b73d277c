// Random takes random bytes wherever programs find them, says ok if no two of them are
// the same; with an argument, when its standard input ends.
package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"
)

func main() {
	if len(os.Args) > 1 {
		io.Copy(io.Discard, os.Stdin)
	}
	seen := map[[16]byte]bool{}
	for range 1000 {
		for _, read := range []func([]byte) (int, error){rand.Read, file("/dev/random"), file("/dev/urandom"), getrandom} {
			var b [16]byte
			if n, err := read(b[:]); n != len(b) || err != nil {
				panic(fmt.Sprint(n, err))
			}
			if seen[b] {
				panic("the same bytes came twice")
			}
			seen[b] = true
		}
	}
	fmt.Println("ok")
}

// file reads from the beginning of a file that is opened for it.
func file(name string) func([]byte) (int, error) {
	return func(b []byte) (int, error) {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		return io.ReadFull(f, b)
	}
}

// getrandom is getrandom(2).
func getrandom(b []byte) (int, error) {
	const number = 318
	n, _, errno := syscall.Syscall(number, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
