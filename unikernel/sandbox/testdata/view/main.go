// Command view shows what a program in the sandbox has: its arguments, its environment, a file that it
// inherits, and who it is. Then it does what its last argument says.
package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

func main() {
	inherited := make([]byte, 64)
	n, err := syscall.Read(3, inherited)
	_, openErr := os.Open("/etc/passwd")
	fmt.Println(strings.Join(os.Args[1:], " "), os.Getenv("VIEW"), string(inherited[:max(n, 0)]), err, openErr != nil)
	fmt.Println(syscall.Getuid(), syscall.Getpid() != 1)
	switch os.Args[len(os.Args)-1] {
	case "exit":
		os.Exit(7)
	case "wait":
		time.Sleep(time.Hour)
	}
}
