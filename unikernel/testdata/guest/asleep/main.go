// Command asleep blocks all of its goroutines. Its argument names one of the ways in ends, in which nothing can wake
// them. Without an argument it blocks in each way of goesOn, in which an event outside of the goroutines wakes one, and
// prints "ok".
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"example.com/guest/internal/check"
)

// ends are deadlocks, at which Linux ends the program: goroutines wait for one another.
var ends = map[string]func(){
	"nothing": func() { select {} },
	"channel": func() { <-make(chan int) },
	"mutexes": func() {
		var a, b sync.Mutex
		a.Lock()
		b.Lock()
		go func() { b.Lock(); a.Unlock() }()
		a.Lock()
	},
	"group": func() {
		var g sync.WaitGroup
		g.Add(1)
		g.Wait()
	},
	"goexit": func() { runtime.Goexit() },
	"printed": func() {
		fmt.Println("printed")
		select {}
	},
	"read": func() {
		io.Copy(io.Discard, os.Stdin)
		select {}
	},
	"slept": func() {
		time.Sleep(time.Millisecond)
		select {}
	},
	"stopped": func() {
		time.NewTimer(time.Hour).Stop()
		select {}
	},
	"listened": func() { // the listener is there, and nobody accepts
		_, err := net.Listen("tcp", "127.0.0.1:0")
		check.Nil(err, "listen")
		select {}
	},
	"talked": func() {
		talk(make(chan bool, 1))
		select {}
	},
	"locked": func() {
		runtime.LockOSThread()
		go runtime.LockOSThread()
		select {}
	},
}

// In each case of goesOn all goroutines block, until an event outside of them makes one send on done.
var goesOn = map[string]func(done chan bool){
	"timer": func(done chan bool) { time.AfterFunc(pause, func() { done <- true }) },
	"tick":  func(done chan bool) { go func() { <-time.Tick(pause); done <- true }() },
	"select": func(done chan bool) {
		go func() {
			select {
			case <-time.After(pause):
			case <-done:
			}
			done <- true
		}()
	},
	"sleep": func(done chan bool) { go func() { time.Sleep(pause); done <- true }() },
	"talk":  func(done chan bool) { talk(done) },
	"deadline": func(done chan bool) {
		l, err := net.ListenPacket("udp", "127.0.0.1:0")
		check.Nil(err, "listen")
		l.SetReadDeadline(time.Now().Add(pause))
		go func() { l.ReadFrom(make([]byte, 1)); done <- true }()
	},
	"call": func(done chan bool) { // a system call that returns by itself
		go func() {
			epoll, err := syscall.EpollCreate1(0)
			check.Nil(err, "epoll")
			syscall.EpollWait(epoll, make([]syscall.EpollEvent, 1), int(pause/time.Millisecond))
			done <- true
		}()
	},
	"input": func(done chan bool) { go func() { os.Stdin.Read(make([]byte, 1)); done <- true }() },
	"signal": func(done chan bool) {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGUSR1)
		time.AfterFunc(pause, func() { syscall.Kill(syscall.Getpid(), syscall.SIGUSR1) })
		go func() { <-c; done <- true }()
	},
	"garbage": func(done chan bool) {
		go func() {
			for range 10 {
				runtime.GC()
			}
			done <- true
		}()
	},
}

// pause is long enough for all goroutines to block.
const pause = 50 * time.Millisecond

// talk sends a byte over a connection, and closes both ends.
func talk(done chan bool) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check.Nil(err, "listen")
	go func() {
		c, err := l.Accept()
		check.Nil(err, "accept")
		time.Sleep(pause)
		c.Write([]byte{1})
		c.Close()
		l.Close()
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	check.Nil(err, "dial")
	c.Read(make([]byte, 2))
	c.Close()
	done <- true
}

func main() {
	if len(os.Args) > 1 {
		ends[os.Args[1]]()
	}
	for _, begin := range goesOn {
		done := make(chan bool)
		go begin(done)
		<-done
	}
	check.Done()
}
