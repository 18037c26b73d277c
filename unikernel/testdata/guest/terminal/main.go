// Command terminal uses a terminal: it gets its size, reads a line of standard input, then a key, and waits for Ctrl-C.
// The terminal is standard input, or the device that the argument names.
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
	terminal := os.Stdin
	if len(os.Args) > 1 {
		var err error
		if terminal, err = os.OpenFile(os.Args[1], os.O_RDWR, 0); err != nil {
			panic(err)
		}
	}
	var size [4]uint16
	control(terminal, syscall.TIOCGWINSZ, unsafe.Pointer(&size))
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	fmt.Println(size[1], "by", size[0])

	line, err := bufio.NewReader(os.Stdin).ReadString('\n')
	fmt.Printf("%q %v\n", line, err)

	var state syscall.Termios
	control(terminal, syscall.TCGETS, unsafe.Pointer(&state))
	state.Lflag &^= syscall.ICANON | syscall.ECHO
	control(terminal, syscall.TCSETS, unsafe.Pointer(&state))
	fmt.Println("press a key")
	key := make([]byte, 1)
	terminal.Read(key)
	fmt.Printf("%q\n", key)

	<-interrupts
	os.Exit(3)
}

func control(terminal *os.File, request uintptr, arg unsafe.Pointer) {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), request, uintptr(arg)); errno != 0 {
		panic(errno)
	}
}
