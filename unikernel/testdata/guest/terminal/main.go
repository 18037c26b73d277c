// Terminal does what programs do at a terminal: it asks how large that is, reads a
// line, then a key, and waits for Ctrl-C.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

func main() {
	var size [4]uint16
	control(syscall.TIOCGWINSZ, unsafe.Pointer(&size))
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	fmt.Println(size[1], "by", size[0])

	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Printf("%q %v\n", line, err)

	var state syscall.Termios
	control(syscall.TCGETS, unsafe.Pointer(&state))
	state.Lflag &^= syscall.ICANON | syscall.ECHO
	control(syscall.TCSETS, unsafe.Pointer(&state))
	fmt.Println("press a key")
	key := make([]byte, 1)
	os.Stdin.Read(key)
	fmt.Printf("%q\n", key)

	<-interrupts
	os.Exit(3)
}

func control(request uintptr, arg unsafe.Pointer) {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, 0, request, uintptr(arg)); errno != 0 {
		panic(errno)
	}
}
