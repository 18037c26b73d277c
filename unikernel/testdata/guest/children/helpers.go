package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// helpers are the functions that this program runs when it has started itself.
var helpers = map[string]func(args []string){
	"echo": func(args []string) { fmt.Println(strings.Join(args, " ")) },
	"read3": func([]string) {
		b, err := io.ReadAll(os.NewFile(3, "three"))
		fmt.Printf("%q %v\n", b, err)
	},
	"where": func([]string) {
		fmt.Println(must(os.Getwd()), os.Environ())
	},
	"handle": func([]string) {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGUSR1)
		fmt.Println("ready")
		fmt.Println(<-c)
		os.Exit(4)
	},
	"ids": func([]string) {
		sid, _, _ := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
		fmt.Println(int(sid) == os.Getpid(), syscall.Getpgrp() == os.Getpid())
	},
	"user": func([]string) {
		groups := must(os.Getgroups())
		fmt.Println(os.Getuid(), os.Geteuid(), os.Getgid(), groups)
		_, err := os.ReadFile("/proc/1/environ")
		fmt.Println(err)
	},
	"signal-parent": func([]string) { none(syscall.Kill(os.Getppid(), syscall.SIGUSR2)) },
	"start": func(args []string) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdout = os.Stdout
		none(cmd.Run())
	},
	"dial": func(args []string) {
		c := must(net.Dial(args[0], args[1]))
		fmt.Fprintln(c, "from the child")
		must(io.Copy(os.Stdout, c))
	},
	"listen": func([]string) {
		l := must(net.Listen("tcp", "127.0.0.1:0"))
		fmt.Println(l.Addr())
		c := must(l.Accept())
		fmt.Fprintln(c, "from the child's server")
		c.Close()
	},
	"socket3": func([]string) {
		c := must(net.FileConn(os.NewFile(3, "socket")))
		must(io.WriteString(c, "hello"))
		b := make([]byte, 64)
		n := must(c.Read(b))
		fmt.Printf("%q\n", b[:n])
	},
	"accept3": func([]string) {
		l := must(net.FileListener(os.NewFile(3, "listener")))
		c := must(l.Accept())
		fmt.Fprintln(c, "accepted by the child")
		c.Close()
	},
	"tty": func([]string) {
		f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		none(err)
		fmt.Fprintln(f, "on the terminal")
	},
}

func overTCP() {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	cmd := me("dial", "tcp", l.Addr().String())
	out := must(cmd.StdoutPipe())
	none(cmd.Start())
	c := must(l.Accept())
	b := make([]byte, 64)
	fmt.Printf("%q\n", b[:must(c.Read(b))])
	fmt.Fprintln(c, "from the parent")
	c.Close()
	fmt.Printf("%q\n", must(io.ReadAll(out)))
	fmt.Println(cmd.Wait())

	cmd = me("listen")
	out = must(cmd.StdoutPipe())
	none(cmd.Start())
	var addr string
	fmt.Fscanln(out, &addr)
	c = must(net.Dial("tcp", addr))
	fmt.Printf("%q\n", must(io.ReadAll(c)))
	c.Close()
	fmt.Println(cmd.Wait())

	cmd = me("accept3")
	theirs := must(l.(*net.TCPListener).File())
	cmd.ExtraFiles = []*os.File{theirs}
	none(cmd.Start())
	theirs.Close()
	c = must(net.Dial("tcp", l.Addr().String()))
	fmt.Printf("%q\n", must(io.ReadAll(c)))
	c.Close()
	fmt.Println(cmd.Wait())
}

func overUnix() {
	path := temporary("x", "", 0o600) + ".sock"
	l := must(net.Listen("unix", path))
	defer l.Close()
	cmd := me("dial", "unix", path)
	out := must(cmd.StdoutPipe())
	none(cmd.Start())
	c := must(l.Accept())
	b := make([]byte, 64)
	fmt.Printf("%q\n", b[:must(c.Read(b))])
	fmt.Fprintln(c, "from the parent")
	c.Close()
	fmt.Printf("%q %v\n", must(io.ReadAll(out)), cmd.Wait())

	pair := must(syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0))
	cmd = me("socket3")
	theirs := os.NewFile(uintptr(pair[1]), "theirs")
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdout = os.Stdout
	none(cmd.Start())
	theirs.Close()
	ours := os.NewFile(uintptr(pair[0]), "ours")
	defer ours.Close()
	fmt.Printf("%q\n", b[:must(ours.Read(b))])
	must(ours.WriteString("answer"))
	fmt.Println(cmd.Wait())
}

// terminal gives a child a terminal as its controlling terminal.
func terminal() {
	master := must(os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0))
	defer master.Close()
	var n, unlock int32
	const getNumber, setLock = 0x80045430, 0x40045431
	control := func(request uintptr, p *int32) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(p))); errno != 0 {
			fmt.Println("failed:", errno)
		}
		runtime.KeepAlive(p)
	}
	control(getNumber, &n)
	control(setLock, &unlock)
	slave := must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0))
	defer slave.Close()
	cmd := me("tty")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	none(cmd.Start())
	b := make([]byte, 64)
	fmt.Printf("%q\n", b[:must(master.Read(b))])
	fmt.Println(cmd.Wait())
}

// proc shows the processes in /proc.
func proc() {
	cmd := exec.Command("/bin/sleep", "100")
	none(cmd.Start())
	var line []byte
	for start := time.Now(); len(line) == 0 && time.Since(start) < 10*time.Second; { // Start returns when execve closes the pipe, and Linux sets the arguments after that
		line = must(os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid)))
	}
	name := must(os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid)))
	fmt.Printf("%q %q\n", name, line)
	own := must(os.Readlink("/proc/self"))
	fmt.Println(own == fmt.Sprint(os.Getpid()), must(os.Readlink("/proc/self/exe")) == must(os.Executable()))
	none(cmd.Process.Kill())
	cmd.Wait()
	_, err := os.Stat(fmt.Sprintf("/proc/%d", cmd.Process.Pid))
	fmt.Println(os.IsNotExist(err))
}
