// Direct uses O_DIRECT on a disk at /data, and makes the file system as large as the disk. It prints "direct" if both work.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"syscall"
	"unsafe"
)

// Requests of ioctl(2).
const (
	getSize = 0x80081272 // BLKGETSIZE64
	resize  = 0x40086610 // EXT4_IOC_RESIZE_FS
)

// file is a name on the disk.
const file = "/data/file"

func main() {
	transfers()
	flags()
	grow()
	fmt.Println("direct")
}

// aligned returns n bytes of memory at a multiple of a page.
func aligned(n int) []byte {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	check(err)
	return b
}

func check(err error) {
	if err != nil {
		log.Output(2, err.Error())
		os.Exit(1)
	}
}

// want ends the program unless a call had a result.
func want(what string, n int, err error, wantN int, wantErr error) {
	if err != wantErr || err == nil && n != wantN {
		log.Fatalf("%s: %d, %v; want %d, %v", what, n, err, wantN, wantErr)
	}
}

// transfers writes and reads with memory, offsets and lengths that are aligned, or not.
func transfers() {
	fd, err := syscall.Open(file, syscall.O_RDWR|syscall.O_CREAT|syscall.O_DIRECT, 0o644)
	check(err)
	defer syscall.Close(fd)
	b := aligned(8192)
	copy(b, bytes.Repeat([]byte("direct.."), 1024))
	n, err := syscall.Pwrite(fd, b, 0)
	want("write", n, err, len(b), nil)
	n, err = syscall.Pwrite(fd, b[1:4097], 0)
	want("write of odd memory", n, err, 0, syscall.EINVAL)
	n, err = syscall.Pwrite(fd, b[:4096], 100)
	want("write at an odd offset", n, err, 0, syscall.EINVAL)
	n, err = syscall.Pwrite(fd, b[:100], 0)
	want("short write", n, err, 0, syscall.EINVAL)
	n, err = syscall.Pread(fd, b[8:4104], 0)
	want("read into odd memory", n, err, 0, syscall.EINVAL)
	n, err = readv(fd, b[:512], b[1024:1536])
	want("readv", n, err, 1024, nil)
	n, err = readv(fd, b[:512], b[1025:1537])
	want("readv into odd memory", n, err, 0, syscall.EINVAL)
	text, err := os.ReadFile(file)
	check(err)
	if len(text) != 8192 || string(text[8184:]) != "direct.." {
		log.Fatalf("the file has %d bytes", len(text))
	}
}

// readv reads into two buffers.
func readv(fd int, a, b []byte) (int, error) {
	v := []syscall.Iovec{{Base: &a[0], Len: uint64(len(a))}, {Base: &b[0], Len: uint64(len(b))}}
	n, _, errno := syscall.Syscall(syscall.SYS_READV, uintptr(fd), uintptr(unsafe.Pointer(&v[0])), uintptr(len(v)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// flags sets and clears the flag, and opens what has no direct I/O.
func flags() {
	fd, err := syscall.Open(file, syscall.O_RDONLY, 0)
	check(err)
	defer syscall.Close(fd)
	b := aligned(4096)
	for _, flag := range []uintptr{syscall.O_DIRECT, 0} {
		_, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFL, flag)
		want("F_SETFL", 0, error(errno), 0, error(syscall.Errno(0)))
		got, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0)
		want("F_GETFL", int(got&syscall.O_DIRECT), nil, int(flag), nil)
		n, err := syscall.Pread(fd, b[1:100], 0)
		if flag != 0 {
			want("read with the flag", n, err, 0, syscall.EINVAL)
		} else {
			want("read without the flag", n, err, 99, nil)
		}
	}
	for _, name := range []string{"/data", "/dev/null"} {
		_, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_DIRECT, 0)
		want(name, 0, err, 0, syscall.EINVAL)
	}
	disk, err := syscall.Open("/dev/vda", syscall.O_RDONLY|syscall.O_DIRECT, 0)
	check(err)
	defer syscall.Close(disk)
	n, err := syscall.Pread(disk, b, 0)
	want("read of the disk", n, err, len(b), nil)
	n, err = syscall.Pread(disk, b[:100], 0)
	want("short read of the disk", n, err, 0, syscall.EINVAL)
}

// grow makes the file system as large as the disk.
func grow() {
	disk, err := os.Open("/dev/vda")
	check(err)
	var size uint64
	ioctl(disk, getSize, &size)
	var before, after syscall.Statfs_t
	check(syscall.Statfs("/data", &before))
	data, err := os.Open("/data")
	check(err)
	blocks := size / uint64(before.Bsize)
	ioctl(data, resize, &blocks)
	check(syscall.Statfs("/data", &after))
	if after.Blocks < 2*before.Blocks || after.Blocks > blocks {
		log.Fatalf("%d blocks became %d on a disk of %d", before.Blocks, after.Blocks, blocks)
	}
	check(os.WriteFile("/data/large", make([]byte, before.Bfree*uint64(before.Bsize)), 0o644))
}

func ioctl(f *os.File, request uintptr, arg *uint64) {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(arg))); errno != 0 {
		log.Fatalf("ioctl %#x of %s: %v", request, f.Name(), errno)
	}
}
