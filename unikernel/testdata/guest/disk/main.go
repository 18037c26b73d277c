// Command disk reads and writes a disk of its machine, in whole blocks and in parts of blocks.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

func main() {
	f, err := os.OpenFile(os.Args[1], os.O_RDWR, 0)
	if errors.Is(err, syscall.EROFS) {
		fmt.Println("read only")
		f, err = os.Open(os.Args[1])
	}
	check(err)
	size, err := f.Seek(0, io.SeekEnd)
	check(err)
	first := make([]byte, 11)
	_, err = f.ReadAt(first, 3)
	check(err)
	fmt.Printf("%d bytes, %q\n", size, first)
	_, err = f.WriteAt([]byte("in the middle"), 700)
	if errors.Is(err, syscall.EBADF) {
		return
	}
	check(err)
	_, err = f.WriteAt(bytes.Repeat([]byte("block"), 4096), 4096)
	check(err)
	if _, err := f.WriteAt([]byte("beyond"), size); !errors.Is(err, syscall.ENOSPC) {
		panic(fmt.Sprint("a write beyond the end: ", err))
	}
	if n, err := f.ReadAt(make([]byte, 10), size-4); n != 4 || err != io.EOF {
		panic(fmt.Sprint("a read over the end: ", n, err))
	}
	check(f.Sync())
	check(f.Close())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
