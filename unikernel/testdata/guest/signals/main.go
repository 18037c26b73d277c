// Command signals prints each signal that it gets and ends at the third.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	c := make(chan os.Signal, 10)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
	fmt.Println("ready")
	for range 3 {
		fmt.Println(<-c)
	}
	os.Exit(7)
}
