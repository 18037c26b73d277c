// Command random reads random bytes from each source that programs use, and prints "ok" if no two results are equal.
// With an argument it does so when its standard input ends.
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

// file returns a function that opens a file and reads its beginning.
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

// getrandom calls getrandom(2).
func getrandom(b []byte) (int, error) {
	const number = 318
	n, _, errno := syscall.Syscall(number, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
